//! Every interleaving of a writer and a reader of a small ring, with loom: bytes arrive in order and whole, and no byte
//! is written while it may be read. Its memory is loom's, which is only reached through raw pointers: hence `unsafe`.

#![allow(unsafe_code)]

use super::{CELL_BYTES, Reader, Shared, Taken, Writer};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

const CELLS: usize = 2;
const LONG_BYTES: usize = 256;

/// Memory whose every access the model sees.
struct Modelled {
    stamps: [AtomicU64; CELLS],
    cells: [UnsafeCell<[u8; CELL_BYTES]>; CELLS],
    /// Half of the second ring each: packets are at most as long.
    long: [UnsafeCell<[u8; LONG_BYTES / 2]>; 2],
    packets: AtomicU64,
    position: AtomicU64,
}

impl Modelled {
    fn new() -> Arc<Modelled> {
        Arc::new(Modelled {
            stamps: std::array::from_fn(|_| AtomicU64::new(0)),
            cells: std::array::from_fn(|_| UnsafeCell::new([0; CELL_BYTES])),
            long: std::array::from_fn(|_| UnsafeCell::new([0; LONG_BYTES / 2])),
            packets: AtomicU64::new(0),
            position: AtomicU64::new(0),
        })
    }
}

impl Shared for Arc<Modelled> {
    fn cells(&self) -> usize {
        CELLS
    }

    fn long_bytes(&self) -> usize {
        LONG_BYTES
    }

    fn stamp(&self, cell: usize) -> u64 {
        self.stamps[cell].load(Ordering::Acquire)
    }

    fn set_stamp(&self, cell: usize, stamp: u64) {
        self.stamps[cell].store(stamp, Ordering::Release);
    }

    fn taken(&self) -> Taken {
        let packets = self.packets.load(Ordering::Acquire);
        Taken { packets, position: self.position.load(Ordering::Acquire) }
    }

    fn set_taken(&self, taken: Taken) {
        self.position.store(taken.position, Ordering::Release);
        self.packets.store(taken.packets, Ordering::Release);
    }

    fn cell(&self, cell: usize) -> &[u8; CELL_BYTES] {
        // SAFETY: the model reports an access that races with a write; the test looks again before it gives back.
        self.cells[cell].with(|bytes| unsafe { &*bytes })
    }

    fn write_cell(&self, cell: usize, at: usize, bytes: &[u8]) {
        let cell = &self.cells[cell];
        // SAFETY: as above.
        cell.with_mut(|cell| unsafe { (&mut *cell)[at..at + bytes.len()].copy_from_slice(bytes) });
    }

    fn long(&self, offset: usize, len: usize) -> &[u8] {
        let (half, at) = (offset / (LONG_BYTES / 2), offset % (LONG_BYTES / 2));
        // SAFETY: as above.
        self.long[half].with(|bytes| unsafe { &(&*bytes)[at..at + len] })
    }

    fn write_long(&self, offset: usize, bytes: &[u8], _: bool) {
        let (half, at) = (offset / (LONG_BYTES / 2), offset % (LONG_BYTES / 2));
        // SAFETY: as above.
        self.long[half].with_mut(|half| unsafe { (&mut *half)[at..at + bytes.len()].copy_from_slice(bytes) });
    }
}

/// Sends messages of these lengths from one thread to another, whatever order their steps come in.
fn explore(lengths: &'static [usize]) {
    let mut model = loom::model::Builder::new();
    // Most faults show with two switches where nobody asked for one (M. Musuvathi, S. Qadeer, PLDI 2007).
    model.preemption_bound = Some(2);
    model.check(move || {
        let shared = Modelled::new();
        let mut writer = Writer::new(shared.clone());
        let writing = loom::thread::spawn(move || {
            for (number, &len) in lengths.iter().enumerate() {
                let message = vec![number as u8 + 1; len];
                while writer.write(&[&message]).unwrap() == 0 {
                    loom::thread::yield_now();
                }
            }
        });
        let mut reader = Reader::new(shared);
        for (number, &len) in lengths.iter().enumerate() {
            let mut left = len;
            while left > 0 {
                let come = reader.peek().unwrap().len();
                if come == 0 {
                    loom::thread::yield_now();
                    continue;
                }
                assert!(reader.is_readable());
                assert_eq!(reader.peek().unwrap(), vec![number as u8 + 1; come]);
                reader.consume(come);
                left -= come;
            }
        }
        writing.join().unwrap();
    });
}

#[test]
fn short_messages_go_round_the_cells() {
    explore(&[3, 56, 1]);
}

#[test]
fn long_messages_go_round_the_second_ring() {
    // One and a half of its length, so that the third waits for room and the ring is used twice.
    explore(&[128, 128, 128]);
}

#[test]
fn short_and_long_messages_keep_their_order() {
    explore(&[8, 100, 8]);
}
