//! What the figures of imported files mean. NCCL's XML and `nvidia-smi` name generations and counts, not bandwidths; the
//! bandwidths are what NCCL reckons with (`src/graph/topo.h`) and, for xGMI, RCCL: what is reached, not what is printed on
//! the box. Neither knows latencies; those are NCCL's for a hop (`src/graph/tuning.cc`), halved where a hop is two links.

/// A link of PCI Express of each generation by 16 lanes, in GB/s; `2.5 GT/s` is the first.
const PCI_X16_GB_PER_S: [(&str, f64); 6] =
    [("2.5", 3.0), ("5", 6.0), ("8", 12.0), ("16", 24.0), ("32", 48.0), ("64", 96.0)];

/// What a PCI link is taken for that does not say: the third generation.
pub(crate) const PCI_DEFAULT: &str = "8 GT/s";
/// Lanes of a PCI link that does not say.
pub(crate) const PCI_WIDTH_DEFAULT: f64 = 16.0;

/// Bytes in a microsecond of a PCI link of 16 lanes, of a speed such as `16.0 GT/s PCIe`.
pub(crate) fn pci_x16(speed: &str) -> Option<f64> {
    let number = speed.trim().split(' ').next()?;
    let number = number.strip_suffix(".0").unwrap_or(number);
    PCI_X16_GB_PER_S.iter().find(|(known, _)| *known == number).map(|(_, gb)| gb * 1e3)
}

/// Bytes in a microsecond of one NVLink, by a GPU's `sm`: compute capability times ten. NCCL's `SM60_NVLINK_BW` 18,
/// `SM70_NVLINK_BW` and `SM80_NVLINK_BW` 20, `SM86_NVLINK_BW` 12, `SM90_NVLINK_BW` 20.6, `SM100_NVLINK_BW` 40.1.
pub(crate) fn nvlink(sm: Option<u64>) -> f64 {
    let gb = match sm {
        Some(sm) if sm >= 100 => 40.1,
        Some(sm) if sm >= 90 => 20.6,
        Some(86) => 12.0,
        Some(sm) if sm >= 70 => 20.0,
        Some(_) => 18.0,
        None => 20.0,
    };
    gb * 1e3
}

/// Bytes in a microsecond of one xGMI link, by a GPU's `gcn`: 906 and 908, 910, 940 and later. RCCL's `VEGA_XGMI_WIDTH` 24,
/// `MI200_XGMI_WIDTH` 36, `GFX94X_XGMI_WIDTH` and `GFX95X_XGMI_WIDTH` 48.
pub(crate) fn xgmi(gcn: Option<u64>) -> f64 {
    let gb = match gcn {
        Some(gcn) if gcn >= 940 => 48.0,
        Some(gcn) if gcn >= 910 => 36.0,
        _ => 24.0,
    };
    gb * 1e3
}

/// Bytes in a microsecond between two processors of a machine; `None` of one that is not known.
pub(crate) fn between_cpus(arch: &str, vendor: &str, model: Option<u64>) -> Option<f64> {
    let gb = match (arch, vendor) {
        ("x86_64", "GenuineIntel") => match model {
            Some(model) if model >= 207 => 40.0,
            Some(model) if model >= 143 => 22.0,
            Some(model) if model >= 85 => 10.0,
            Some(_) => 6.0,
            None => 10.0,
        },
        ("x86_64", "AuthenticAMD") => 16.0,
        ("x86_64", "CentaurHauls" | "  Shanghai  ") => 6.0,
        ("ppc64" | "ppc64le", _) => 32.0,
        ("arm64" | "aarch64", _) => 6.0,
        _ => return None,
    };
    Some(gb * 1e3)
}

/// The same of a processor that is not known.
pub(crate) const BETWEEN_CPUS_DEFAULT: f64 = 10e3;
/// Bytes in a microsecond of a network port that does not say: 10 Gb/s, as in NCCL.
pub(crate) const PORT_DEFAULT: f64 = 1.25e3;

/// Microseconds over an NVLink or xGMI link between two GPUs: NCCL's `hwLat` of a ring with LL over NVLink.
pub(crate) const GPU_LINK_US: f64 = 0.6;
/// Microseconds over one of the two links by way of an NVSwitch.
pub(crate) const NVSWITCH_LINK_US: f64 = 0.3;
/// Microseconds over a PCI link.
pub(crate) const PCI_LINK_US: f64 = 0.5;
/// Microseconds between two processors.
pub(crate) const CPU_LINK_US: f64 = 0.5;
/// Microseconds between a network port and the network.
pub(crate) const PORT_LINK_US: f64 = 1.0;
