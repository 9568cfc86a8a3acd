//! Graphs.

use super::{api, put};
use crate::code::Code;

api! {
    fn cuGraphInstantiateWithFlags(out: *mut u64, graph: u64, flags: u64) => |driver| {
        put(out, driver.instantiate(graph, flags)?)
    };
    fn cuGraphLaunch(graph: u64, stream: u64) => |driver| {
        let stream = driver.stream(stream)?;
        driver.launch_graph(graph, stream)
    };
    /// There is nowhere to bring it.
    fn cuGraphUpload(graph: u64, stream: u64) => |driver| {
        driver.stream(stream)?;
        match driver.launchables.contains_key(&graph) {
            true => Ok(()),
            false => Err(driver.wrong(Code::INVALID_VALUE, format!("{graph:#x} is no graph that can be launched"))),
        }
    };
    /// How many nodes it has; they have no handles.
    fn cuGraphGetNodes(graph: u64, nodes: usize, count: *mut u64) => |driver| {
        match driver.graphs.get(&graph).map(|graph| graph.nodes.len() as u64) {
            Some(all) if nodes == 0 => put(count, all),
            Some(_) => Err(driver.wrong(Code::NOT_SUPPORTED, "nodes have no handles here")),
            None => Err(driver.wrong(Code::INVALID_VALUE, format!("{graph:#x} is no graph"))),
        }
    };
    fn cuGraphExecDestroy(graph: u64) => |driver| driver.destroy_launchable(graph);
    fn cuGraphDestroy(graph: u64) => |driver| match driver.graphs.remove(&graph) {
        Some(_) => Ok(()),
        None => Err(driver.wrong(Code::INVALID_VALUE, format!("{graph:#x} is no graph"))),
    };
}
