//! NVLink and xGMI: links between GPUs, by the bus id of the other.

use super::super::figures;
use super::{Gpu, Importer, Part, Switch, short};
use coll_base::Span;
use std::collections::{BTreeMap, HashMap};

impl Importer<'_> {
    /// NVLink and xGMI. Each link is listed at both of its ends, and counts once.
    pub(super) fn gpu_links(&mut self) {
        // In files of several machines bus ids repeat: the nth GPU of an id is linked with the nth of another.
        let mut by_bus: HashMap<String, Vec<usize>> = HashMap::new();
        let mut nth: Vec<usize> = Vec::new();
        for (at, gpu) in self.gpus.iter().enumerate() {
            let same = by_bus.entry(gpu.bus.clone().unwrap_or_default().to_ascii_lowercase()).or_default();
            nth.push(same.len());
            same.push(at);
        }
        let mut found: BTreeMap<[Part; 2], (u32, f64, f64, Span)> = BTreeMap::new();
        let mut nvswitch = None;
        let elements = self.elements;
        for (from, &nth) in nth.iter().enumerate() {
            let Some(element) = self.gpus[from].element else { continue };
            for &at in &elements[element].children {
                let link = &elements[at];
                let is_nvlink = match link.tag.as_str() {
                    "nvlink" => true,
                    "xgmi" => false,
                    _ => {
                        self.stray(link, "<gpu>");
                        continue;
                    }
                };
                self.attributes(link);
                let Gpu { sm, gcn, .. } = self.gpus[from];
                if is_nvlink && sm.is_none() {
                    self.assumed(&elements[element], "sm", "NVLinks of 20GB/s are assumed");
                }
                if !is_nvlink && gcn.is_none() {
                    self.assumed(&elements[element], "gcn", "xGMI links of 24GB/s are assumed");
                }
                let rate = if is_nvlink { figures::nvlink(sm) } else { figures::xgmi(gcn) };
                if link.get("count").is_none() {
                    self.assumed(link, "count", "one link is assumed");
                }
                let count = self.number(link, "count").unwrap_or(1).clamp(1, 4096) as u32;
                let class =
                    link.get("tclass").map(|class| class.value.to_ascii_lowercase()).unwrap_or_default();
                let target = link.get("target").map(|target| target.value.to_ascii_lowercase());
                let to = if class.starts_with("0x068001") {
                    Some(Part::Switch(self.gpus[from].cpu))
                } else if class.starts_with("0x0680") {
                    let switch = *nvswitch.get_or_insert_with(|| {
                        let name = "nvswitch".to_string();
                        self.switches.push(Switch { name, note: None, span: link.span });
                        self.switches.len() - 1
                    });
                    Some(Part::Switch(switch))
                } else {
                    let same = target.as_ref().and_then(|target| by_bus.get(target));
                    same.map(|same| Part::Gpu(*same.get(nth).unwrap_or(&same[0])))
                };
                let Some(to) = to else {
                    let shown = short(target.as_deref().unwrap_or("without `target`"));
                    self.warnings.add("target", link.span, || {
                        format!(
                            "a `<{}>` leads to {shown}, which is no GPU of this file; it is not used",
                            link.tag
                        )
                    });
                    continue;
                };
                if to == Part::Gpu(from) {
                    self.warnings.add("self", link.span, || {
                        format!("a `<{}>` leads from a GPU to itself; it is not used", link.tag)
                    });
                    continue;
                }
                let is_pair = matches!(to, Part::Gpu(_));
                let latency_us = if is_pair { figures::GPU_LINK_US } else { figures::NVSWITCH_LINK_US };
                let ends = if to < Part::Gpu(from) { [to, Part::Gpu(from)] } else { [Part::Gpu(from), to] };
                let known = found.entry(ends).or_insert((0, rate, latency_us, link.span));
                if is_pair { known.0 = known.0.max(count) } else { known.0 += count }
            }
        }
        for (ends, (count, rate, latency_us, span)) in found {
            self.join(ends, rate, latency_us, count.clamp(1, 4096), span);
        }
    }
}
