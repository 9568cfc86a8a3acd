//! Copies and fills.

use super::{api, waiting_api};
use crate::copy::Side::{Any, Device, Host};

waiting_api! {
    fn cuMemcpy(to: u64, from: u64, bytes: u64) => |d| d.copy_now((to, Any), (from, Any), bytes), |_| Ok(());
    fn cuMemcpyAsync(to: u64, from: u64, bytes: u64, stream: u64) =>
        |d| {
            let stream = d.stream(stream)?;
            d.copy(stream, (to, Any), (from, Any), bytes)
        },
        |_| Ok(());
    fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: u64) =>
        |d| d.copy_now((to, Device), (from, Host), bytes), |_| Ok(());
    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: u64, stream: u64) =>
        |d| {
            let stream = d.stream(stream)?;
            d.copy(stream, (to, Device), (from, Host), bytes)
        },
        |_| Ok(());
    fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: u64) =>
        |d| d.copy_now((to, Host), (from, Device), bytes), |_| Ok(());
    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: u64, stream: u64) =>
        |d| {
            let stream = d.stream(stream)?;
            d.copy(stream, (to, Host), (from, Device), bytes)
        },
        |_| Ok(());
    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: u64) =>
        |d| d.copy_now((to, Device), (from, Device), bytes), |_| Ok(());
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: u64, stream: u64) =>
        |d| {
            let stream = d.stream(stream)?;
            d.copy(stream, (to, Device), (from, Device), bytes)
        },
        |_| Ok(());
    /// It comes after all that both contexts were given, and before all that they will be: here it waits.
    fn cuMemcpyPeer(to: u64, to_context: u64, from: u64, from_context: u64, bytes: u64) =>
        |d| {
            d.no_capture_minds()?;
            let stream = d.stream(0)?;
            for context in [to_context, from_context] {
                d.captures_nothing(context)?;
                let before = d.wait_for_context(context);
                before.records.into_iter().for_each(|record| d.push(stream, crate::work::Work::Wait(record)));
            }
            d.copy_peer(stream, (to, to_context), (from, from_context), bytes)?;
            Ok(d.wait_for_streams(&[stream]))
        },
        |_| Ok(());
    fn cuMemcpyPeerAsync(to: u64, to_context: u64, from: u64, from_context: u64, bytes: u64, stream: u64) =>
        |d| {
            let stream = d.stream(stream)?;
            d.copy_peer(stream, (to, to_context), (from, from_context), bytes)
        },
        |_| Ok(());
}

api! {
    fn cuMemsetD8_v2(to: u64, value: u8, count: u64) => |d| d.fill_now(to, value.into(), 1, count);
    fn cuMemsetD16_v2(to: u64, value: u16, count: u64) => |d| d.fill_now(to, value.into(), 2, count);
    fn cuMemsetD32_v2(to: u64, value: u32, count: u64) => |d| d.fill_now(to, value, 4, count);
    fn cuMemsetD8Async(to: u64, value: u8, count: u64, stream: u64) => |d| {
        let stream = d.stream(stream)?;
        d.fill(stream, to, value.into(), 1, count)
    };
    fn cuMemsetD16Async(to: u64, value: u16, count: u64, stream: u64) => |d| {
        let stream = d.stream(stream)?;
        d.fill(stream, to, value.into(), 2, count)
    };
    fn cuMemsetD32Async(to: u64, value: u32, count: u64, stream: u64) => |d| {
        let stream = d.stream(stream)?;
        d.fill(stream, to, value, 4, count)
    };
}
