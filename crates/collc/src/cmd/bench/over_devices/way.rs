//! How ranks on devices are together: all in this process, or each in one of its own.

use super::super::settings::Settings;
use crate::cmd::run::devices::{self, apart::Apart, machines::Machine};
use crate::failure::Failure;
use coll_gpu::{BufferPointers, Call, Device, Group, GroupError, Prepared, SharedCall, StreamHandle};
use coll_tcp::{JoinOptions, Token};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The ranks of this process among all.
pub(in super::super) trait Way: Sized {
    /// A call that is ready.
    type Ready;

    /// Meets the others, who must choose alike.
    fn join(settings: &Settings, choices: u64) -> Result<Self, Failure>;

    /// Which ranks are here.
    fn ranks(&self) -> Range<u32>;

    /// The device of one of them.
    fn device(&self, rank: u32) -> Arc<Device>;

    /// Makes a call ready.
    fn prepare(
        &mut self,
        call: &Call<'_>,
        buffers: &[Vec<BufferPointers>],
    ) -> Result<Self::Ready, GroupError>;

    /// Runs it once, to the end.
    fn run(
        &mut self,
        ready: &mut Self::Ready,
        buffers: &[Vec<BufferPointers>],
        streams: &[StreamHandle],
        limit: Duration,
    ) -> Result<(), GroupError>;

    /// Gives it back.
    fn close(&mut self, ready: Self::Ready) -> Result<(), GroupError>;

    /// Comes back when all ranks have come here.
    fn meet(&mut self) -> Result<(), Failure>;

    /// Tells ranks elsewhere that these give up.
    fn abort(&mut self, reason: &str);
}

/// All of them.
pub(in super::super) struct Together(Group);

impl Way for Together {
    type Ready = Prepared;

    fn join(settings: &Settings, _: u64) -> Result<Together, Failure> {
        devices::group(settings.world, None).map(Together)
    }

    fn ranks(&self) -> Range<u32> {
        0..self.0.ranks()
    }

    fn device(&self, rank: u32) -> Arc<Device> {
        self.0.device(rank).expect("invariant: the group has every rank").clone()
    }

    fn prepare(&mut self, call: &Call<'_>, _: &[Vec<BufferPointers>]) -> Result<Prepared, GroupError> {
        self.0.prepare(call)
    }

    fn run(
        &mut self,
        ready: &mut Prepared,
        buffers: &[Vec<BufferPointers>],
        streams: &[StreamHandle],
        limit: Duration,
    ) -> Result<(), GroupError> {
        ready.launch(buffers, streams)?;
        ready.wait(limit)
    }

    fn close(&mut self, _: Prepared) -> Result<(), GroupError> {
        Ok(())
    }

    /// A run is done on all ranks when it returns.
    fn meet(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn abort(&mut self, _: &str) {}
}

/// One, in its own process.
pub(in super::super) struct Alone {
    rank: u32,
    apart: Apart,
}

impl Way for Alone {
    type Ready = SharedCall;

    fn join(settings: &Settings, choices: u64) -> Result<Alone, Failure> {
        let limit = Duration::from_secs_f64(settings.time_limit_s);
        let mut options = JoinOptions::new(settings.rank, settings.world, settings.rendezvous.clone());
        options.token = Token::from(settings.token.clone());
        options.tls = settings.tls;
        options.time_limit = limit;
        options.fingerprint = super::super::wire::fingerprint(settings, choices);
        Ok(Alone { rank: settings.rank, apart: Apart::join(options, limit, (Machine::here(), None))? })
    }

    fn ranks(&self) -> Range<u32> {
        self.rank..self.rank + 1
    }

    fn device(&self, _: u32) -> Arc<Device> {
        self.apart.device().clone()
    }

    fn prepare(
        &mut self,
        call: &Call<'_>,
        buffers: &[Vec<BufferPointers>],
    ) -> Result<SharedCall, GroupError> {
        self.apart.prepare(call, &buffers[0])
    }

    fn run(
        &mut self,
        ready: &mut SharedCall,
        _: &[Vec<BufferPointers>],
        streams: &[StreamHandle],
        limit: Duration,
    ) -> Result<(), GroupError> {
        self.apart.run(ready, streams[0], limit)
    }

    fn close(&mut self, ready: SharedCall) -> Result<(), GroupError> {
        self.apart.close(ready)
    }

    fn meet(&mut self) -> Result<(), Failure> {
        self.apart.meet()
    }

    fn abort(&mut self, reason: &str) {
        self.apart.abort(reason);
    }
}
