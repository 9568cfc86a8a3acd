//! `--counts`: elements of each block, where blocks are to differ in length. `3,0,7` is a list that every rank's first
//! buffer follows; a matrix has a row for each rank, in lines or between semicolons: what rank r gives to rank q, in an
//! all-to-all, stands in row r and column q.

use crate::args::RunArgs;
use crate::failure::Failure;
use coll_plan::Plan;
use std::path::Path;

/// The largest file of counts that is read.
const FILE_SIZE_MAX_BYTES: u64 = 64 << 20;

/// Rows of counts; a list is one row.
#[derive(Debug, PartialEq)]
pub(super) struct Rows(Vec<Vec<u64>>);

/// Reads the option: counts, or the name of a file of them.
pub(super) fn read(text: &str) -> Result<Rows, Failure> {
    if text.trim_start().starts_with(|c: char| c.is_ascii_digit()) || !Path::new(text).exists() {
        return rows(text).map_err(|what| {
            Failure::unusable(format!("`--counts {text}`: {what}"))
                .help("write `3,0,7`, a matrix such as `1,2;0,3`, or the name of a file of such lines")
        });
    }
    let bytes = coll::read_bytes(Path::new(text), FILE_SIZE_MAX_BYTES)?;
    let content = String::from_utf8_lossy(&bytes);
    rows(&content).map_err(|what| Failure::unusable(format!("`--counts {text}`: in that file {what}")))
}

fn rows(text: &str) -> Result<Rows, String> {
    let lines = text.split(['\n', ';']).map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let row = |(at, line): (usize, &str)| {
        let cells = line.split([',', ' ', '\t']).filter(|cell| !cell.is_empty());
        let count = |cell: &str| {
            let number = cell.replace('_', "").parse::<u64>();
            number.map_err(|_| format!("row {}: `{cell}` is no number of elements", at + 1))
        };
        cells.map(count).collect::<Result<Vec<u64>, String>>()
    };
    let rows = lines.map(row).collect::<Result<Vec<_>, String>>()?;
    match rows.first() {
        None => Err("there are no counts".into()),
        Some(first) => match rows.iter().position(|row| row.len() != first.len()) {
            None => Ok(Rows(rows)),
            Some(at) => Err(format!(
                "row {} has {} counts where the first row has {}",
                at + 1,
                rows[at].len(),
                first.len()
            )),
        },
    }
}

impl Rows {
    /// Elements of the largest row: what a rank's first buffer has at most. Nothing if they are more than can be counted.
    pub(super) fn elements(&self) -> Option<u64> {
        let sum = |row: &Vec<u64>| row.iter().try_fold(0u64, |sum, &count| sum.checked_add(count));
        self.0.iter().map(sum).collect::<Option<Vec<u64>>>()?.into_iter().max()
    }

    /// Whether blocks differ in length.
    pub(super) fn differ(&self) -> bool {
        let first = self.0.first().and_then(|row| row.first());
        self.0.iter().flatten().any(|count| Some(count) != first)
    }

    /// The element count of every class of a whole plan.
    pub(super) fn by_class(&self, plan: &Plan) -> Result<Vec<u64>, Failure> {
        let (contract, ranks) = (&plan.contract, plan.world() as usize);
        let Some(first) = contract.buffers.first() else {
            return Err(Failure::unusable(format!("{} moves no data, so `--counts` has no use", plan.name)));
        };
        if !plan.is_whole() {
            let what =
                "one rank's part does not tell the counts of the others; `--counts` needs the whole plan";
            return Err(Failure::unusable(what));
        }
        let (blocks, width) = (first.blocks as usize, self.0[0].len());
        if width != blocks {
            let each = format!("`{}` has {blocks} blocks on {ranks} ranks", first.name);
            return Err(Failure::unusable(format!("`--counts` has {width} counts a row, and {each}"))
                .help(format!("give {blocks} counts: zeros count too")));
        }
        if self.0.len() != 1 && self.0.len() != ranks {
            let rows = self.0.len();
            return Err(Failure::unusable(format!(
                "`--counts` has {rows} rows, and there are {ranks} ranks"
            ))
            .help("give one row for all ranks, or a row for each"));
        }
        let mut counts: Vec<Option<u64>> = vec![None; contract.classes.count as usize];
        for rank in 0..ranks {
            let row = self.0.get(rank).unwrap_or(&self.0[0]);
            for (block, &count) in row.iter().enumerate() {
                let class = contract.class(rank as u32, 0, block as u32) as usize;
                match counts[class] {
                    Some(known) if known != count => {
                        return Err(Failure::unusable(format!(
                            "{}[{block}] has {count} elements on rank {rank}, and the contract of {} makes it as long as \
                             one of {known}",
                            first.name, contract.collective
                        ))
                        .help("give equal counts for blocks that must be alike, or one row for all ranks"));
                    }
                    _ => counts[class] = Some(count),
                }
            }
        }
        match counts.iter().all(Option::is_some) {
            true => Ok(counts.into_iter().flatten().collect()),
            false => Err(Failure::unusable(format!(
                "`{}` alone does not tell the length of every block of {}",
                first.name, contract.collective
            ))
            .help("give `--bytes` instead of `--counts`")),
        }
    }
}

/// `alltoallv` is `alltoall` with counts. Says whether the name asks for counts.
pub(super) fn operation(name: &str) -> Option<(&'static str, bool)> {
    let bare = name.strip_suffix(['v', 'V']).map(|bare| bare.trim_end_matches(['_', '-']));
    match coll::canonical_operation(name) {
        Some(operation) => Some((operation, false)),
        None => Some((coll::canonical_operation(bare?)?, true)),
    }
}

/// The option, if it is given; a name such as `alltoallv` needs it.
pub(super) fn given(args: &RunArgs) -> Result<Option<Rows>, Failure> {
    match &args.counts {
        Some(text) => read(text).map(Some),
        None => match operation(&args.target) {
            Some((operation, true)) => Err(Failure::unusable(format!(
                "`{}` is {operation} with blocks of any lengths; how many elements has each?",
                args.target
            ))
            .help("`--counts 3,0,7` says so for three ranks")),
            _ => Ok(None),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_matrices_are_read() {
        assert_eq!(rows("3,0,7"), Ok(Rows(vec![vec![3, 0, 7]])));
        assert_eq!(rows("1,2;0,3"), Ok(Rows(vec![vec![1, 2], vec![0, 3]])));
        assert_eq!(rows("1 2\n0\t1_000\n\n"), Ok(Rows(vec![vec![1, 2], vec![0, 1000]])));
        assert_eq!(rows("1,2;0,3").unwrap().elements(), Some(3));
        assert!(!rows("2,2;2,2").unwrap().differ() && rows("2,2;2,1").unwrap().differ());
    }

    #[test]
    fn what_is_no_count_is_named_with_its_row() {
        assert_eq!(rows("1,2;x,3"), Err("row 2: `x` is no number of elements".into()));
        assert_eq!(rows("1,-2"), Err("row 1: `-2` is no number of elements".into()));
        assert_eq!(rows("1,2;3"), Err("row 2 has 1 counts where the first row has 2".into()));
        assert_eq!(rows(" ; "), Err("there are no counts".into()));
        let most = u64::MAX.to_string();
        assert_eq!(rows(&format!("{most},1")).unwrap().elements(), None);
    }

    #[test]
    fn a_v_asks_for_counts() {
        assert_eq!(operation("alltoallv"), Some(("alltoall", true)));
        assert_eq!(operation("all-to-all-v"), Some(("alltoall", true)));
        assert_eq!(operation("reduce_scatter_v"), Some(("reduce_scatter", true)));
        assert_eq!(operation("allgather"), Some(("allgather", false)));
        assert_eq!(operation("v"), None);
    }
}
