//! The kernel's native asynchronous I/O, as far as a worker needs it.

use std::ptr;

use crate::aio_abi::{ControlBlock, DURABLE, IoEvent};
use crate::clock;
use crate::failure::{Failure, checked};

/// An I/O to submit.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    pub slot: usize,
    pub opcode: u16,
    pub durable: bool,
    /// Address of its memory, with its length.
    pub memory: (u64, u64),
    pub offset: u64,
}

/// A queue of asynchronous I/Os on one descriptor.
#[derive(Debug)]
pub struct AsyncIo {
    context: libc::c_ulong,
    descriptor: u32,
    blocks: Vec<ControlBlock>,
}

impl AsyncIo {
    pub fn open(descriptor: libc::c_int, depth: usize) -> Result<Self, Failure> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the pointer is valid for the call.
        let result =
            unsafe { libc::syscall(libc::SYS_io_setup, depth, ptr::from_mut(&mut context)) };
        checked("preparing asynchronous I/O", result as libc::c_int)?;
        let blocks = vec![ControlBlock::default(); depth];
        Ok(Self { context, descriptor: descriptor as u32, blocks })
    }

    /// Submits I/Os in one call, so that the kernel may merge them. This may sleep.
    ///
    /// # Safety
    ///
    /// The memory of each order must stay in place until its completion is reaped.
    pub unsafe fn submit(&mut self, orders: &[Order]) -> Result<(), Failure> {
        let mut waiting = Vec::with_capacity(orders.len());
        for order in orders {
            let (buffer, bytes) = order.memory;
            self.blocks[order.slot] = ControlBlock {
                data: order.slot as u64,
                rw_flags: if order.durable { DURABLE } else { 0 },
                opcode: order.opcode,
                descriptor: self.descriptor,
                buffer,
                bytes,
                offset: order.offset as i64,
                ..ControlBlock::default()
            };
            waiting.push(&raw const self.blocks[order.slot]);
        }
        let mut done = 0;
        while done < waiting.len() {
            let left = &waiting[done..];
            // SAFETY: the blocks live in a vector that never grows; the caller keeps the memory.
            let result = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, left.len(), left.as_ptr())
            };
            done += checked("submitting I/O", result as libc::c_int)? as usize;
        }
        Ok(())
    }

    /// Waits for a completion, at most for a time; gives the slots of all that are there, with their results
    /// (bytes, or a negative error number).
    pub fn reap(&mut self, wait_ns: u64) -> Result<Vec<(usize, i64)>, Failure> {
        let mut events = vec![IoEvent::default(); self.blocks.len()];
        let timeout = clock::timespec(wait_ns);
        // SAFETY: the memory holds as many events as the call may write.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                1_usize,
                events.len(),
                events.as_mut_ptr(),
                &raw const timeout,
            )
        };
        let count = checked("waiting for I/O", result as libc::c_int)? as usize;
        Ok(events[..count].iter().map(|event| (event.data as usize, event.result)).collect())
    }
}
