//! What a reader and a writer make of memory that no peer could have left so.

use super::{CELL_BYTES, CELLS, LONG, Reader, Shared, Taken, Writer};
use crate::memory::Block;
use crate::ring::Ring;
use std::sync::Arc;

const RING_BYTES: usize = 16 << 10;

fn ring() -> (Ring, Ring) {
    let block = Arc::new(Block::heap(Ring::block_bytes(RING_BYTES)).unwrap());
    (Ring::new(block.clone(), RING_BYTES), Ring::new(block, RING_BYTES))
}

/// What a reader that has read `before` bytes makes of a first cell with this stamp and position.
fn read(before: usize, what: u32, position: u64) -> Result<usize, String> {
    let (ring, memory) = ring();
    let (theirs, mut reader) = (Ring::new(ring.block(), RING_BYTES), Reader::new(ring));
    let mut packets = 0;
    if before > 0 {
        Writer::new(theirs).write(&[&vec![7; before]]).unwrap();
        let come = reader.peek().unwrap().len();
        assert_eq!(come, before);
        assert!(reader.consume(come));
        packets = 1;
    }
    memory.write_cell(packets, 0, &position.to_le_bytes());
    memory.set_stamp(packets, (packets as u64 + 1) << 32 | u64::from(what));
    reader.peek().map(<[u8]>::len).map_err(|damage| damage.0)
}

#[test]
fn lengths_and_positions_that_cannot_be_are_damage() {
    let ring = RING_BYTES as u32;
    assert_eq!(read(0, 8, 0), Ok(8));
    assert_eq!(read(0, CELL_BYTES as u32 + 1, 0).unwrap_err(), "a packet of 57 B in a cell of 56 B");
    assert_eq!(read(0, 0, 0).unwrap_err(), "a packet of 0 B in a cell of 56 B");
    assert_eq!(read(0, LONG | ring, 0), Ok(RING_BYTES));
    let damaged =
        [(0, ring + 1, 0), (0, 1, u64::MAX), (0, 0, 0), (0, 2, u64::from(ring) - 1), (0, u32::MAX >> 1, 5)];
    for (before, len, position) in damaged {
        let damage = read(before, LONG | len, position).unwrap_err();
        assert!(damage.contains("of a ring of 16384 B"), "{damage}");
    }
    // Behind what has been read, and as far ahead as the writer may not be.
    assert!(read(1000, LONG | 8, 0).is_err() && read(1000, LONG | 8, u64::from(ring) + 1024).is_err());
    assert_eq!(read(1000, LONG | 8, 1024), Ok(8));
}

#[test]
fn any_numbers_in_a_ring_lead_nowhere_outside() {
    // A fixed sequence (Marsaglia's xorshift, 2003): the same on every machine.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..20_000 {
        let (ring, memory) = ring();
        let mut reader = Reader::new(ring);
        for cell in 0..3 {
            memory.write_cell(cell, 0, &(random() >> (random() % 64)).to_le_bytes());
            memory.set_stamp(cell, (cell as u64 + 1) << 32 | random() >> (32 + random() % 32) & 0x8000_ffff);
        }
        // As far as it goes: each packet read whole.
        while let Ok(come) = reader.peek() {
            let len = come.len();
            std::hint::black_box(come.iter().map(|byte| u64::from(*byte)).sum::<u64>());
            if len == 0 {
                break;
            }
            reader.consume(len);
        }
    }
}

#[test]
fn a_reader_that_claims_more_than_was_written_is_damage() {
    for taken in [
        Taken { packets: CELLS as u64 + 1, position: 0 },
        Taken { packets: 1, position: 1 },
        Taken { packets: u64::MAX, position: u64::MAX },
    ] {
        let (ring, memory) = ring();
        let mut writer = Writer::new(ring);
        memory.set_taken(taken);
        for _ in 0..CELLS {
            assert_eq!(writer.write(&[&[1]]), Ok(1));
        }
        assert!(writer.is_writable(), "there is news");
        let damage = writer.write(&[&[1]]).unwrap_err();
        assert!(damage.0.starts_with("its reader claims"), "{}", damage.0);
    }
}

#[test]
fn the_payload_of_a_long_message_starts_a_line() {
    let (ring, other) = ring();
    let (mut writer, mut reader) = (Writer::new(ring), Reader::new(other));
    for (header, payload) in [(48, 1000), (32, 3000), (48, 9000), (32, 20_000)] {
        let (header, payload) = (vec![1u8; header], vec![2u8; payload]);
        let mut parts = [&header[..], &payload[..]];
        let mut read = Vec::new();
        while read.len() < header.len() + payload.len() {
            let mut taken = writer.write(&parts).unwrap();
            for part in &mut parts {
                let of_part = taken.min(part.len());
                *part = &part[of_part..];
                taken -= of_part;
            }
            while let come @ [_, ..] = reader.peek().unwrap() {
                let payload = come.iter().position(|byte| *byte == 2);
                // Later packets of a payload start lines, too.
                let first = payload.map(|at| come[at..].as_ptr() as usize);
                assert!(come.len() <= CELL_BYTES || first.is_none_or(|first| first.is_multiple_of(64)));
                read.extend_from_slice(come);
                let len = come.len();
                reader.consume(len);
            }
            if parts[0].is_empty() {
                parts.swap(0, 1);
            }
        }
        assert_eq!(read, [header, payload].concat());
    }
}
