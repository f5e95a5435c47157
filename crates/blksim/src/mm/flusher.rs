//! Writing dirty pages, by the flusher and by fsync (`mm/page-writeback.c` and `fs/fs-writeback.c`,
//! Linux 6.1).

use crate::block::request::{Flags, Hint, Operation, Priority, Purpose, Request, TaskId};
use crate::core::event::Class;
use crate::machine::Machine;
use crate::mm::page_cache::state::{DIRTY, TO_WRITE, WRITEBACK};
use crate::mm::page_cache::{PAGE_BYTES, PAGE_SECTORS};
use crate::task::tasks::Tasks;

impl Machine {
    /// The time until which a task that dirtied pages must pause, if it must.
    pub(crate) fn balance_dirty_pages(&mut self, task: TaskId) -> Option<u64> {
        let (now_ns, nr_dirty) = (self.block.events.now_ns(), self.mm.cache.nr_dirty());
        if nr_dirty > self.mm.writeback.level(&self.mm.cache).background {
            self.run_flusher();
        }
        let writeback = &mut self.mm.writeback;
        let level = writeback.level(&self.mm.cache);
        let dirtier = &mut self.tasks[task].dirtier;
        let until_ns = writeback.throttle.balance(dirtier, level, now_ns);
        if until_ns.is_some() {
            for disk in self.block.disks.iter_mut() {
                disk.dirtier_paused_ns = Some(now_ns);
            }
        }
        until_ns
    }

    /// The flusher's periodic check (`wb_check_old_data_flush`).
    pub(crate) fn writeback_tick(&mut self) {
        let now_ns = self.block.events.now_ns();
        let deadline_ns = now_ns.checked_sub(self.mm.writeback.expire_ns);
        self.mm.writeback.expired = deadline_ns.is_some_and(|deadline_ns| {
            self.mm
                .writeback
                .files
                .iter()
                .any(|f| f.dirty_since_ns.is_some_and(|t| t <= deadline_ns))
        });
        self.run_flusher();
        self.block.events.at(now_ns + self.mm.writeback.period_ns, Class::Writeback, 0);
    }

    /// Writes within one plug until no data is due or the flusher must sleep (`wb_writeback`).
    pub(crate) fn run_flusher(&mut self) {
        let task = self.tasks.flusher;
        if self.tasks[task].blocked {
            return;
        }
        self.plug(task);
        while !self.tasks[task].blocked && !self.mm.writeback.stalled {
            if let Some((file, left)) = self.mm.writeback.unfinished.take() {
                self.write_pages(task, file, left);
                continue;
            }
            let over = self.mm.writeback.is_over_background(&self.mm.cache);
            let Some(file) = self.mm.writeback.next_dirty_file(over, self.block.events.now_ns())
            else {
                break;
            };
            self.write_chunk(task, file);
        }
        if !self.tasks[task].blocked {
            self.unplug(task);
        }
    }

    /// Writes one chunk of a file's dirty pages, from the flusher's position.
    fn write_chunk(&mut self, task: TaskId, file: usize) {
        let (now_ns, under_way) = (self.block.events.now_ns(), self.mm.cache.nr_writeback() > 0);
        self.mm.writeback.throttle.writeback_begins(now_ns, under_way);
        let chunk = self.mm.writeback.chunk_pages();
        self.mm.writeback.group = self.mm.writeback.files[file].owner;
        let left = self.write_pages(task, file, chunk);
        // Nothing could be written although something is dirty: all of it is
        // on its way already. The next completion calls again.
        self.mm.writeback.stalled = left == chunk && !self.tasks[task].blocked;
    }

    /// Writes what is left of a chunk, from the flusher's position. If the flusher must sleep meanwhile, it continues
    /// this chunk afterwards, whatever is dirty then. Returns the number of pages that are left.
    fn write_pages(&mut self, task: TaskId, file: usize, mut left: u64) -> u64 {
        let first = self.mm.files[file].start / PAGE_BYTES;
        let end = (self.mm.files[file].start + self.mm.files[file].bytes).div_ceil(PAGE_BYTES);
        let mut page = self.mm.writeback.files[file].cursor.max(first);
        let mut wrapped = page == first;
        while left > 0 && !self.tasks[task].blocked {
            let Some(dirty) = self.mm.cache.next_writable(page, end) else {
                if wrapped {
                    break;
                }
                wrapped = true;
                page = first;
                continue;
            };
            let written = self.write_dirty_run(task, dirty, end.min(dirty + left), false);
            page = dirty + written;
            left = left.saturating_sub(written);
        }
        let state = &mut self.mm.writeback.files[file];
        state.cursor = page;
        if self.mm.cache.next_with(DIRTY, first, end).is_none() {
            state.dirty_since_ns = None;
        } else if left > 0 && self.tasks[task].blocked {
            self.mm.writeback.unfinished = Some((file, left));
        }
        left
    }

    /// Writes the contiguous dirty pages from `first` on, at most one bio's worth. Returns their
    /// number.
    pub(crate) fn write_dirty_run(
        &mut self,
        task: TaskId,
        first: u64,
        end: u64,
        sync: bool,
    ) -> u64 {
        let of_queue = (u64::from(self.block.disks[0].max_sectors) / PAGE_SECTORS).max(1);
        let max_pages = self.mm.writeback.bio_pages.min(of_queue);
        let wanted = if sync { TO_WRITE } else { DIRTY };
        let mut page = first;
        while page < end && page - first < max_pages {
            let page_state = self.mm.cache.get(page);
            if page_state & wanted == 0 || page_state & WRITEBACK != 0 {
                break;
            }
            self.mm.cache.change(page, WRITEBACK, DIRTY | TO_WRITE);
            page += 1;
        }
        let sector = first * PAGE_SECTORS;
        let sectors = ((page - first) * PAGE_SECTORS).min(self.block.capacity_sectors - sector);
        let mut bio = Request::new(Operation::Write, sector, sectors as u32, Purpose::Writeback);
        // The flusher is a kernel thread of ordinary priority, whichever task dirtied the pages.
        (bio.priority, bio.group) = if sync {
            let process = &self.tasks.processes[Tasks::process_of(task) as usize];
            (process.priority, process.group)
        } else {
            (Priority::DEFAULT, self.mm.writeback.group)
        };
        let hint = if sync { Hint::Plain } else { Hint::Background };
        bio.flags = Flags { sync, hint };
        bio.context = task;
        let id = self.block.requests.allocate(bio);
        self.submit(task, id);
        if self.mm.writeback.bio_pages == 1 && self.tasks[task].blocked {
            self.mm.writeback.held.push((task, first));
        }
        page - first
    }

    /// A task's submission is through: releases the page that it was writing.
    pub(crate) fn release_page(&mut self, task: TaskId) {
        let held = &mut self.mm.writeback.held;
        if let Some(place) = held.iter().position(|(holder, _)| *holder == task) {
            let (_, page) = held.remove(place);
            self.mm.wake_page_waiters(&mut self.block.ready, page, page + 1);
        }
    }

    /// A write of cached pages is done.
    pub(crate) fn pages_written(&mut self, sector: u64, nr_sectors: u32) {
        let first = sector / PAGE_SECTORS;
        let end = (sector + u64::from(nr_sectors)).div_ceil(PAGE_SECTORS);
        for page in first..end {
            self.mm.cache.change(page, 0, WRITEBACK);
        }
        self.mm.writeback.throttle.note_written(end - first);
        self.mm.wake_page_waiters(&mut self.block.ready, first, end);
        if std::mem::take(&mut self.mm.writeback.stalled) {
            self.run_flusher();
        }
    }
}
