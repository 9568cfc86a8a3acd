//! Devices and contexts: who holds which, which is current on a thread, and who may use whose memory.

use crate::code::{Answer, Code};
use crate::driver::{CURRENT, Driver};
use crate::stream::{Role, Stream};
use std::collections::BTreeSet;

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) device: usize,
    /// Its stream 0.
    pub(crate) default: u64,
    /// Contexts whose memory its work may use.
    pub(crate) peers: BTreeSet<u64>,
    pub(crate) flags: u32,
    /// What its work came to grief with; all that comes after fails so too.
    pub(crate) error: Option<Code>,
}

impl Driver {
    /// A device by its number.
    pub(crate) fn device(&mut self, ordinal: i32) -> Answer<usize> {
        match usize::try_from(ordinal) {
            Ok(device) if device < self.config.devices => Ok(device),
            _ => {
                let text = format!("there is no device {ordinal} among {}", self.config.devices);
                Err(self.wrong(Code::INVALID_DEVICE, text))
            }
        }
    }

    /// A new context of a device.
    pub(crate) fn create_context(&mut self, device: usize, flags: u32) -> u64 {
        let (handle, default) = (self.handle(), self.handle());
        let label = format!("stream 0 of device {device}");
        let stream = Stream::new(self.actor(), handle, label, Role::Default);
        self.streams.insert(default, stream);
        let context = Context { device, default, peers: BTreeSet::new(), flags, error: None };
        self.contexts.insert(handle, context);
        handle
    }

    /// A device's primary context, held once more.
    pub(crate) fn retain_primary(&mut self, device: usize) -> u64 {
        let handle = match self.primaries.get(&device) {
            Some(&(handle, _)) => handle,
            None => self.create_context(device, 0),
        };
        self.primaries.entry(device).or_insert((handle, 0)).1 += 1;
        handle
    }

    /// Held once less. What is to end with it.
    pub(crate) fn release_primary(&mut self, device: usize) -> Answer<Option<u64>> {
        let Some((handle, held)) = self.primaries.get_mut(&device) else {
            let text = format!("the primary context of device {device} is not held");
            return Err(self.wrong(Code::INVALID_CONTEXT, text));
        };
        *held -= 1;
        if *held > 0 {
            return Ok(None);
        }
        let handle = *handle;
        self.primaries.remove(&device);
        Ok(Some(handle))
    }

    /// The end of a context, with all that is its. Its work has been done.
    pub(crate) fn destroy_context(&mut self, handle: u64) {
        self.contexts.remove(&handle);
        // Graphs that have work of it cannot run any more, nor captures go on.
        let here = |nodes: &[crate::graph::Node]| nodes.iter().any(|node| node.context == handle);
        let launchables: Vec<u64> = self
            .launchables
            .iter()
            .filter(|(_, graph)| here(graph.nodes()))
            .map(|(&graph, _)| graph)
            .collect();
        launchables.into_iter().for_each(|graph| {
            let _ = self.destroy_launchable(graph);
        });
        let caught: Vec<u64> =
            self.streams.values().filter(|s| s.context == handle).filter_map(|s| s.capture).collect();
        caught.into_iter().for_each(|capture| self.abandon(capture));
        self.streams.retain(|_, stream| stream.context != handle);
        self.events.retain(|_, event| event.context != handle);
        let modules: Vec<u64> =
            self.modules.iter().filter(|(_, m)| m.context == handle).map(|(&module, _)| module).collect();
        modules.into_iter().for_each(|module| self.unload(module));
        let mine: Vec<u64> =
            self.memory.all().filter(|a| a.context == handle && !a.is_host()).map(|a| a.base).collect();
        mine.into_iter().for_each(|base| self.memory.release(base));
        self.contexts.values_mut().for_each(|context| {
            context.peers.remove(&handle);
        });
    }

    /// A context by its handle.
    pub(crate) fn context(&mut self, handle: u64) -> Answer<&mut Context> {
        if !self.contexts.contains_key(&handle) {
            return Err(self.wrong(Code::INVALID_CONTEXT, format!("{handle:#x} is no context")));
        }
        self.contexts.get_mut(&handle).ok_or(Code::INVALID_CONTEXT)
    }

    /// The context that is current on this thread, if one is.
    pub(crate) fn current(&self) -> Option<u64> {
        let top = CURRENT.with_borrow(|stack| stack.last().copied());
        top.filter(|handle| self.contexts.contains_key(handle))
    }

    /// The same, where there must be one that has not come to grief.
    pub(crate) fn current_context(&mut self) -> Answer<u64> {
        let Some(handle) = self.current() else {
            return Err(self.wrong(Code::INVALID_CONTEXT, "no context is current on this thread"));
        };
        self.sound(handle)?;
        Ok(handle)
    }

    /// An error if a context's work has come to grief.
    pub(crate) fn sound(&mut self, context: u64) -> Answer {
        match self.context(context)?.error {
            Some(code) => Err(code),
            None => Ok(()),
        }
    }

    /// The current context's work may use memory of another.
    pub(crate) fn enable_peer(&mut self, peer: u64) -> Answer {
        let mine = self.current_context()?;
        let theirs = self.context(peer)?.device;
        let device = self.context(mine)?.device;
        if mine == peer {
            return Err(self.wrong(Code::INVALID_CONTEXT, "a context has its own memory anyway"));
        }
        if !self.config.reaches(device, theirs) {
            let text = format!("device {device} cannot reach the memory of device {theirs}");
            return Err(self.wrong(Code::PEER_ACCESS_UNSUPPORTED, text));
        }
        if !self.context(mine)?.peers.insert(peer) {
            return Err(Code::PEER_ACCESS_ALREADY_ENABLED);
        }
        Ok(())
    }

    /// It may no longer.
    pub(crate) fn disable_peer(&mut self, peer: u64) -> Answer {
        let mine = self.current_context()?;
        match self.context(mine)?.peers.remove(&peer) {
            true => Ok(()),
            false => Err(self.wrong(Code::PEER_ACCESS_NOT_ENABLED, "it was not enabled")),
        }
    }
}
