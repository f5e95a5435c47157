//! Buffered reads, writes and fsync: calls that proceed in steps and sleep in between.

use std::ops::Range;

use crate::block::flush_queue::FlushWaiter;
use crate::block::plug::PlugFlush;
use crate::block::request::TaskId;
use crate::core::event::Class;
use crate::core::record::Direction;
use crate::machine::Machine;
use crate::mm::page_cache::PAGE_BYTES;
use crate::mm::page_cache::state::{DIRTY, LOCKED, MARKER, PRESENT, TO_WRITE, WRITEBACK};
use crate::mm::writeback::PAGEVEC_PAGES;
use crate::task::buffered_call::{BufferedCall, CallStage};
use crate::task::ready::Ready;
use crate::task::tasks::Tasks;
use crate::workload::generator::Transfer;

impl Machine {
    /// Starts a buffered read or write.
    pub(crate) fn start_buffered(&mut self, index: u32, transfer: Transfer, start_ns: u64) {
        let Transfer { direction, offset, bytes, .. } = transfer;
        self.compute_copying(bytes);
        let stage =
            if direction == Direction::Read { CallStage::Reading } else { CallStage::Writing };
        let cost_ns = self.mm.costs.first_ns(bytes);
        let place = offset..offset + u64::from(bytes);
        self.start_call(index, stage, direction, place, cost_ns, start_ns);
    }

    /// Starts fsync or fdatasync on a process's file.
    pub(crate) fn start_sync(&mut self, index: u32, start_ns: u64) {
        let file = self.mm.files[self.tasks.processes[index as usize].region.file as usize];
        let place = file.start..file.start + file.bytes;
        self.start_call(index, CallStage::Tagging, Direction::Sync, place, 0, start_ns);
    }

    fn start_call(
        &mut self,
        task: TaskId,
        stage: CallStage,
        direction: Direction,
        place: Range<u64>,
        cost_ns: u64,
        started_ns: u64,
    ) {
        let call = BufferedCall {
            stage,
            direction,
            page: place.start / PAGE_BYTES,
            end: place.end.div_ceil(PAGE_BYTES),
            start_byte: place.start,
            bytes: place.end - place.start,
            started_ns,
            cost_ns,
            looked_through: false,
        };
        self.tasks[task].call = Some(call);
        if self.mm.costs.ahead.is_some() && self.pay(task, call) {
            return;
        }
        self.advance_call(task);
    }

    /// Lets a call go on until it sleeps or is complete.
    pub(crate) fn advance_call(&mut self, task: TaskId) {
        if self.tasks[task].blocked {
            return;
        }
        let Some(call) = self.tasks[task].call else { return };
        match call.stage {
            CallStage::Reading => self.advance_read(task, call),
            CallStage::Writing => self.advance_write(task, call),
            CallStage::Tagging => self.begin_flush(task, call),
            CallStage::WritingOut => self.advance_flush(task, call),
            CallStage::Waiting => self.advance_wait(task, call),
            CallStage::Device => {}
            CallStage::Done => self.end_call(task, call),
        }
    }

    /// Stores the call. If it owes processor time, that passes first and the result is true.
    fn pay(&mut self, task: TaskId, mut call: BufferedCall) -> bool {
        let cost_ns = std::mem::take(&mut call.cost_ns);
        self.tasks[task].call = Some(call);
        if cost_ns > 0 {
            self.block.events.at(self.block.events.now_ns() + cost_ns, Class::Task, task);
            return true;
        }
        false
    }

    fn sleep_for_page(&mut self, task: TaskId, page: u64, call: BufferedCall) {
        self.mm.page_waiters.push((page, task));
        self.tasks[task].call = Some(call);
    }

    fn advance_read(&mut self, task: TaskId, mut call: BufferedCall) {
        let file_start =
            self.mm.files[self.tasks.processes[task as usize].region.file as usize].start;
        while call.page < call.end {
            let page_state = self.mm.cache.get(call.page);
            let cached = page_state & (PRESENT | LOCKED) != 0;
            if cached && page_state & MARKER == 0 && page_state & LOCKED == 0 {
                call.cost_ns += self.mm.costs.page_ns;
                call.page += 1;
                continue;
            }
            // This page needs work: first let time catch up.
            if self.pay(task, call) {
                return;
            }
            if page_state & MARKER != 0 {
                self.mm.cache.change(call.page, 0, MARKER);
                let wanted = self.pages_wanted(task, call);
                self.read_ahead(task, call.page, wanted, true);
            } else if cached {
                self.sleep_for_page(task, call.page, call);
                return;
            } else if self.tasks.processes[task as usize].mapped {
                self.read_for_fault(task, call.page);
            } else {
                self.read_ahead(task, call.page, call.end - call.page, false);
            }
            if self.tasks[task].blocked {
                return;
            }
        }
        if self.pay(task, call) {
            return;
        }
        let process = &mut self.tasks.processes[task as usize];
        if !process.mapped {
            process.window.previous = call.end - 1 - file_start / PAGE_BYTES;
        } else if process.sync {
            // msync of what was read: nothing to write, but the device's cache is emptied all the same.
            call.page = call.end;
            self.begin_flush(task, call);
            return;
        }
        self.end_call(task, call);
    }

    /// Pages that a call says it wants, or that a fault in a mapped file asks the readahead for.
    fn pages_wanted(&self, task: TaskId, call: BufferedCall) -> u64 {
        let process = &self.tasks.processes[task as usize];
        if process.mapped { self.mm.window_pages(process.advice) } else { call.end - call.page }
    }

    /// A write to a mapped file finds its page missing, or reaches a marker: it reads as a read does.
    /// True if it must wait.
    fn fault_before_write(&mut self, task: TaskId, call: BufferedCall) -> bool {
        let page_state = self.mm.cache.get(call.page);
        if page_state & (PRESENT | MARKER) == PRESENT {
            return false;
        }
        if self.pay(task, call) {
            return true;
        }
        if page_state & MARKER != 0 {
            self.mm.cache.change(call.page, 0, MARKER);
            let wanted = self.pages_wanted(task, call);
            self.read_ahead(task, call.page, wanted, true);
        } else if page_state & LOCKED == 0 {
            self.read_for_fault(task, call.page);
        }
        if self.tasks[task].blocked {
            return true;
        }
        let missing = self.mm.cache.get(call.page) & PRESENT == 0;
        if missing {
            self.sleep_for_page(task, call.page, call);
        }
        missing
    }

    fn advance_write(&mut self, task: TaskId, mut call: BufferedCall) {
        let last_byte = call.start_byte + call.bytes;
        loop {
            if self.tasks[task].dirtier.must_balance {
                if self.pay(task, call) {
                    return;
                }
                if let Some(until_ns) = self.balance_dirty_pages(task) {
                    self.block.events.at(until_ns, Class::Task, task);
                    return;
                }
            }
            if call.page >= call.end {
                break;
            }
            if self.tasks.processes[task as usize].mapped && self.fault_before_write(task, call) {
                return;
            }
            let page_state = self.mm.cache.get(call.page);
            let begin = call.page * PAGE_BYTES;
            let partial = begin < call.start_byte || begin + PAGE_BYTES > last_byte;
            let held = self.mm.writeback.is_held(call.page);
            if held || page_state & LOCKED != 0 || (partial && page_state & PRESENT == 0) {
                // Part of a page that is not in memory is read first.
                if self.pay(task, call) {
                    return;
                }
                if !held && page_state & LOCKED == 0 {
                    self.read_pages(task, call.page, 1, 0);
                }
                if !self.tasks[task].blocked {
                    self.sleep_for_page(task, call.page, call);
                }
                return;
            }
            self.mm.cache.change(call.page, PRESENT | DIRTY, 0);
            let process = &self.tasks.processes[task as usize];
            let (file, group) = (process.region.file, process.group);
            let dirtier = &mut self.tasks[task].dirtier;
            let now_ns = self.block.events.now_ns();
            let was_clean = page_state & DIRTY == 0;
            self.mm.writeback.note_dirtied(dirtier, file, group, was_clean, now_ns);
            call.cost_ns += self.mm.costs.page_ns;
            call.page += 1;
        }
        if self.pay(task, call) {
            return;
        }
        if self.tasks.processes[task as usize].sync {
            call.page = call.start_byte / PAGE_BYTES;
            self.begin_flush(task, call);
            return;
        }
        self.end_call(task, call);
    }

    /// Begins fsync, which ignores pages that become dirty from now on (`tag_pages_for_writeback`
    /// of `mm/page-writeback.c`, Linux 6.1).
    fn begin_flush(&mut self, task: TaskId, mut call: BufferedCall) {
        self.mm.cache.tag_dirty(call.page, call.end);
        call.stage = CallStage::WritingOut;
        self.advance_flush(task, call);
    }

    /// fsync, first step: writes all dirty pages in order, within one plug (`generic_writepages` of
    /// `mm/page-writeback.c`, Linux 6.1).
    fn advance_flush(&mut self, task: TaskId, mut call: BufferedCall) {
        self.plug(task);
        let at_once = self.mm.writeback.pages_looked_up();
        while let Some(page) = self.next_looked_up(task, &mut call, TO_WRITE, at_once) {
            if self.mm.writeback.is_held(page) || self.mm.cache.get(page) & WRITEBACK != 0 {
                // Another task is about to write it, or it was changed while it is being written.
                self.end_plug(task, PlugFlush::ForSleep);
                self.sleep_for_page(task, page, call);
                return;
            }
            self.tasks[task].looked_up.pop_front();
            if self.mm.cache.get(page) & DIRTY == 0 {
                continue;
            }
            let written = self.write_dirty_run(task, page, call.end, true);
            call.page = call.page.max(page + written);
            if self.tasks[task].blocked {
                self.tasks[task].call = Some(call);
                return;
            }
        }
        self.end_plug(task, PlugFlush::AtEnd);
        call.stage = CallStage::Waiting;
        call.page = call.start_byte / PAGE_BYTES;
        call.looked_through = false;
        self.advance_wait(task, call);
    }

    /// The next page of fsync. It looks up several at once and visits each, whatever other tasks do
    /// with it meanwhile; having found fewer, it does not look again (`pagevec_lookup_range_tag` of
    /// `mm/swap.c`, Linux 6.1).
    fn next_looked_up(
        &mut self,
        task: TaskId,
        call: &mut BufferedCall,
        bit: u8,
        at_once: usize,
    ) -> Option<u64> {
        let looked_up = &mut self.tasks[task].looked_up;
        if looked_up.is_empty() && !call.looked_through {
            while looked_up.len() < at_once {
                let Some(page) = self.mm.cache.next_with(bit, call.page, call.end) else { break };
                looked_up.push_back(page);
                call.page = page + 1;
            }
            call.looked_through = looked_up.len() < at_once;
        }
        looked_up.front().copied()
    }

    /// fsync, second step: one pass over the pages that are being written.
    fn advance_wait(&mut self, task: TaskId, mut call: BufferedCall) {
        while let Some(page) = self.next_looked_up(task, &mut call, WRITEBACK, PAGEVEC_PAGES) {
            if self.mm.cache.get(page) & WRITEBACK != 0 {
                self.sleep_for_page(task, page, call);
                return;
            }
            self.tasks[task].looked_up.pop_front();
        }
        if self.block.disks[0].volatile_cache {
            call.stage = CallStage::Device;
            self.tasks[task].call = Some(call);
            self.want_flush(0, FlushWaiter::Call(task));
            return;
        }
        // Nothing to wait for: the system call still takes its time, unless computing takes none.
        call.stage = CallStage::Device;
        let done_ns = self.block.events.now_ns() + self.mm.costs.system_call_ns;
        if call.started_ns == self.block.events.now_ns() && self.mm.costs.ahead.is_none() {
            call.stage = CallStage::Waiting;
            call.page = call.end;
            call.looked_through = true;
            self.tasks[task].call = Some(call);
            self.block.events.at(done_ns, Class::Task, task);
            return;
        }
        self.end_call(task, call);
    }

    /// fsync, last step: the device's cache is empty.
    pub(crate) fn call_is_durable(&mut self, task: TaskId) {
        if let Some(call) = &mut self.tasks[task].call {
            call.stage = CallStage::Done;
            self.block.ready.make_ready(Ready::Call(task));
        }
    }

    fn end_call(&mut self, task: TaskId, call: BufferedCall) {
        self.tasks[task].call = None;
        self.compute_end_of_call(Tasks::process_of(task));
        let bytes = if call.direction == Direction::Sync { 0 } else { call.bytes };
        let process = Tasks::process_of(task);
        let span = (call.started_ns, self.block.events.now_ns());
        self.tasks.finish_io(process, call.direction, bytes, span, &mut self.block.recorder);
        if self.tasks.calling != Some(process) {
            self.drive(process);
        }
    }
}
