//! The parts that were found become a description: they get their order, their names and their links.

use super::super::Imported;
use super::{Gpu, Importer, Part};
use crate::description::{Description, Duplex, Kind, LinkDecl, MachineDecl, NodeDecl, Pairs};
use coll_base::Diagnostic;
use std::collections::HashSet;

impl Importer<'_> {
    /// Links between GPUs, names, and the whole.
    pub(super) fn finish(mut self) -> Result<Imported, Vec<Diagnostic>> {
        self.gpu_links();
        if !self.faults.is_empty() {
            return Err(self.faults);
        }
        let (order, gpu_names) = self.gpu_order();
        let nic_names = self.nic_names();
        let has_nics = !self.nics.is_empty();
        let node = |kind, name: &str, note: &Option<String>, span| NodeDecl {
            note: note.clone(),
            ..NodeDecl::new(kind, name, span)
        };
        let mut nodes = Vec::new();
        for &at in &order {
            let gpu = &self.gpus[at];
            nodes.push(node(Kind::Device, &gpu_names[at], &gpu.bus, gpu.span));
        }
        for (nic, name) in self.nics.iter().zip(&nic_names) {
            nodes.push(node(Kind::Nic, name, &nic.note, nic.span));
        }
        for switch in &self.switches {
            nodes.push(node(Kind::Switch, &switch.name, &switch.note, switch.span));
        }
        if self.gpus.is_empty() {
            self.warnings.add("none", self.elements[0].span, || {
                "no GPU is described, so no rank can be placed on this topology".to_string()
            });
        }
        let name = |part: Part| match part {
            Part::Gpu(at) => gpu_names[at].clone(),
            Part::Nic(at) => nic_names[at].clone(),
            Part::Switch(at) => self.switches[at].name.clone(),
            Part::Fabric => "fabric".to_string(),
        };
        let (mut links, mut outside) = (Vec::new(), Vec::new());
        for joined in &self.links {
            let is_outside = joined.ends.contains(&Part::Fabric);
            let [a, b] = joined.ends.map(name);
            let a = if is_outside { format!("node*.{a}") } else { a };
            let link = LinkDecl {
                between: [a, b],
                pairs: is_outside.then_some(Pairs::All),
                bytes_per_us: joined.bytes_per_us,
                latency_us: joined.latency_us,
                duplex: Duplex::Full,
                count: joined.count,
                span: joined.span,
            };
            if is_outside { outside.push(link) } else { links.push(link) }
        }
        let span = self.elements[0].span;
        let mut description = Description {
            machines: vec![MachineDecl { name: "node".to_string(), count: Some(1), nodes, links, span }],
            links: outside,
            ..Description::default()
        };
        if has_nics {
            description.nodes.push(NodeDecl::new(Kind::Switch, "fabric", span));
        }
        Ok(Imported { description, warnings: self.warnings.told() })
    }

    /// GPUs in the order in which ranks take them, by `rank` if all have one, else by `dev`, else as they stand; and their
    /// names.
    fn gpu_order(&mut self) -> (Vec<usize>, Vec<String>) {
        let mut order: Vec<usize> = (0..self.gpus.len()).collect();
        let all = |key: &dyn Fn(&Gpu) -> Option<u64>| -> Option<Vec<u64>> {
            let keys: Option<Vec<u64>> = self.gpus.iter().map(key).collect();
            keys.filter(|keys| keys.iter().collect::<HashSet<_>>().len() == keys.len())
        };
        let (ranks, devs) = (all(&|gpu| gpu.rank), all(&|gpu| gpu.dev));
        if let Some(keys) = ranks.as_ref().or(devs.as_ref()) {
            order.sort_by_key(|&at| keys[at]);
        }
        let mut names = vec![String::new(); self.gpus.len()];
        for (place, &at) in order.iter().enumerate() {
            names[at] = format!("gpu{}", devs.as_ref().map_or(place as u64, |devs| devs[at]));
        }
        if devs.is_none() && self.gpus.iter().any(|gpu| gpu.dev.is_some()) {
            self.warnings.add("dev twice", self.elements[0].span, || {
                "numbers `dev` of GPUs are missing or repeat; GPUs are numbered in order".to_string()
            });
        }
        (order, names)
    }

    fn nic_names(&self) -> Vec<String> {
        let mut taken: HashSet<String> = self.switches.iter().map(|switch| switch.name.clone()).collect();
        let mut names = Vec::new();
        for (at, nic) in self.nics.iter().enumerate() {
            let given = nic.name.clone().filter(|name| !name.starts_with("gpu") && !taken.contains(name));
            let mut name = given.unwrap_or_else(|| format!("nic{at}"));
            while taken.contains(&name) {
                name.push('x');
            }
            taken.insert(name.clone());
            names.push(name);
        }
        names
    }
}
