//! The resolved tree: what the static pass makes of a syntax tree. Names are gone: a variable is a number, so that
//! evaluation only indexes. Everything here is well typed and stands where it may, or its schedule is `broken` and
//! never elaborated.
//!
//! Variables are of two kinds. **Globals** are seen everywhere in a schedule, its functions included: `n` is
//! [`GLOBAL_N`], `root` is [`GLOBAL_ROOT`], then the collective's other parameters, then the schedule's. **Locals**
//! are `let`, `for`, `each` and comprehension variables, one slot for each declaration; a function's parameters are
//! locals of their own.

use crate::builtin::Builtin;
use crate::lists::ListFunction;
use coll_base::{DType, Span};
use coll_contract::BufferRole;
use coll_ir::Kind;
use coll_syntax::ast::BinaryOp;

/// Where `n` is among the globals.
pub(crate) const GLOBAL_N: usize = 0;
/// Where `root` is among the globals, whether the collective has one or not.
pub(crate) const GLOBAL_ROOT: usize = 1;
/// Where the parameters start.
pub(crate) const GLOBAL_PARAMS: usize = 2;

/// What an expression yields. Truth values are computed as 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Number,
    Truth,
    /// An error was reported: agree with everything.
    Unknown,
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Int(i64),
    Global(u32),
    Local(u32),
    Neg(Box<Expr>),
    Not(Box<Expr>),
    Binary(BinaryOp, Box<[Expr; 2]>),
    /// A function of the program, by index.
    Call(u32, Vec<Expr>),
    Builtin(Builtin, Vec<Expr>),
    /// A function of the list that a global says the place of, and a number.
    OfList(ListFunction, u32, Box<Expr>),
    /// Condition, then, else.
    If(Box<[Expr; 3]>),
}

impl Expr {
    /// Calls `seen` with the slot of every local that the expression names.
    pub(crate) fn each_local(&self, seen: &mut impl FnMut(u32)) {
        match &self.kind {
            ExprKind::Int(_) | ExprKind::Global(_) => {}
            ExprKind::Local(slot) => seen(*slot),
            ExprKind::Neg(x) | ExprKind::Not(x) | ExprKind::OfList(_, _, x) => x.each_local(seen),
            ExprKind::Binary(_, both) => both.iter().for_each(|x| x.each_local(seen)),
            ExprKind::If(all) => all.iter().for_each(|x| x.each_local(seen)),
            ExprKind::Call(_, arguments) | ExprKind::Builtin(_, arguments) => {
                arguments.iter().for_each(|x| x.each_local(seen));
            }
        }
    }
}

/// `fn`: its parameters are locals `0..params`.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) params: u32,
    pub(crate) body: Expr,
    pub(crate) yields: Type,
    /// How deep its evaluation recurses.
    pub(crate) height: u32,
    /// It has errors: what calls it is broken too.
    pub(crate) broken: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) low: Expr,
    pub(crate) high: Expr,
    pub(crate) inclusive: bool,
    pub(crate) span: Span,
}

/// `e for k in a..b [where c]`
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub(crate) value: Expr,
    pub(crate) slot: u32,
    pub(crate) range: Range,
    pub(crate) condition: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) enum Group {
    Range(Range),
    List(Vec<Expr>),
    For(Box<Comprehension>),
}

/// What a view is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// A buffer of the collective.
    Buffer(u32),
    /// A scratch of the schedule.
    Scratch(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) storage: Storage,
    pub(crate) index: Vec<Index>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Index {
    One(Expr),
    Range(Range),
    For(Box<Comprehension>),
}

#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) kind: Kind,
    /// What is read; nothing for a signal.
    pub(crate) source: Option<View>,
    /// Where it lands; nothing is where it came from.
    pub(crate) target: Option<View>,
    pub(crate) from: Expr,
    /// The receiver; nothing is the sender itself.
    pub(crate) to: Option<Expr>,
    pub(crate) span: Span,
}

/// A statement of a step.
#[derive(Clone, Debug)]
pub(crate) enum StepStmt {
    Let(u32, Expr),
    For(For<StepStmt>),
    If(Expr, Vec<StepStmt>, Vec<StepStmt>),
    Transfer(Transfer),
}

#[derive(Clone, Debug)]
pub(crate) struct For<S> {
    /// The whole statement.
    pub(crate) span: Span,
    pub(crate) var: Variable,
    pub(crate) range: Range,
    pub(crate) condition: Option<Expr>,
    pub(crate) body: Vec<S>,
}

/// A variable that messages show.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) slot: u32,
    pub(crate) name: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) each: Option<Each>,
    pub(crate) body: Vec<StepStmt>,
    /// From `step` to the brace that opens the body.
    pub(crate) span: Span,
    /// To the brace that closes it.
    pub(crate) whole: Span,
}

/// Whether a statement could move something.
pub(crate) trait Moves {
    /// True for transfers, steps and calls, and for what holds one.
    fn moves(&self) -> bool;
}

impl<S: Moves> Moves for [S] {
    fn moves(&self) -> bool {
        self.iter().any(S::moves)
    }
}

impl Moves for StepStmt {
    fn moves(&self) -> bool {
        match self {
            StepStmt::Let(..) => false,
            StepStmt::For(all) => all.body.moves(),
            StepStmt::If(_, yes, no) => yes.moves() || no.moves(),
            StepStmt::Transfer(_) => true,
        }
    }
}

impl Moves for Stmt {
    fn moves(&self) -> bool {
        match self {
            Stmt::Chunks(_) | Stmt::Scratch(..) | Stmt::Let(..) | Stmt::Require(..) | Stmt::Tune(_) => false,
            Stmt::For(all) => all.body.moves(),
            Stmt::If(_, yes, no) => yes.moves() || no.moves(),
            Stmt::Stage(_, body) => body.moves(),
            Stmt::Step(step) => step.body.moves(),
            Stmt::Call(_) => true,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Each {
    pub(crate) var: Variable,
    pub(crate) group: Option<Group>,
    pub(crate) condition: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Index into the module's schedules.
    pub(crate) schedule: u32,
    pub(crate) views: Vec<View>,
    /// Which of the callee's globals, and its value.
    pub(crate) named: Vec<(u32, Given)>,
    pub(crate) on: Option<Group>,
    pub(crate) span: Span,
}

/// What a call gives to a parameter.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Number(Expr),
    /// To a parameter that is a list: numbers.
    List(Vec<Expr>),
    /// To such a parameter: the caller's own list, by the global that says where it is.
    Same(u32),
}

/// What `tune` can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tuning {
    Lanes,
    Slices,
    Accumulate,
    Wire,
}

/// What it is set to.
#[derive(Clone, Debug)]
pub(crate) enum Tuned {
    Number(Tuning, Expr),
    /// An element type, and where it is written.
    Type(Tuning, DType, Span),
}

/// A statement of a schedule.
#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    Chunks(Vec<Expr>),
    /// Which of the schedule's scratch names, and its extents.
    Scratch(u32, Vec<Expr>, Span),
    Let(u32, Expr),
    For(For<Stmt>),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// The condition and the reason to give when it fails.
    Require(Expr, String),
    Stage(String, Vec<Stmt>),
    Tune(Vec<Tuned>),
    Step(Step),
    Call(Call),
}

#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) default: Value,
}

/// What a parameter has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(i64),
    /// At least one number.
    List(Vec<i64>),
}

impl Param {
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.default, Value::List(_))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) name: String,
    /// The name's place.
    pub(crate) span: Span,
    pub(crate) docs: Vec<String>,
    /// Index into the module's collectives; none if there is no such collective.
    pub(crate) collective: Option<u32>,
    pub(crate) collective_name: String,
    /// In the order of their globals: the collective's own, then the schedule's.
    pub(crate) params: Vec<Param>,
    /// Whether it says `root` itself. If not it is written for root 0.
    pub(crate) names_root: bool,
    pub(crate) scratch: Vec<String>,
    /// The name of each local slot.
    pub(crate) locals: Vec<String>,
    pub(crate) body: Vec<Stmt>,
    /// Schedules that it calls.
    pub(crate) calls: Vec<u32>,
    /// It has errors and is not elaborated.
    pub(crate) broken: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Collective {
    pub(crate) name: String,
    /// The name's place.
    pub(crate) span: Span,
    pub(crate) rooted: bool,
    /// Parameters but for `root`, in the order of their globals.
    pub(crate) params: Vec<String>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) facts: Vec<Fact>,
    /// Names of the facts' variables by slot.
    pub(crate) locals: Vec<String>,
    pub(crate) broken: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    /// The name's place.
    pub(crate) span: Span,
    pub(crate) role: BufferRole,
    /// Number of blocks; none is a plain buffer.
    pub(crate) blocks: Option<Expr>,
    /// Declared `[ranks]`: block i is rank i's, and turns with the root.
    pub(crate) by_rank: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// Slots of the variables, outermost first.
    pub(crate) vars: Vec<u32>,
    pub(crate) range: Option<Range>,
    pub(crate) condition: Option<Expr>,
    pub(crate) at: Expr,
    pub(crate) body: FactBody,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum FactBody {
    Given(Place),
    Copy(Place, Source),
    Reduce(Place, Reduction),
    /// The first rank leaves only after the second has entered.
    After(Expr, Expr),
}

#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    pub(crate) slot: u32,
    pub(crate) range: Option<Range>,
    pub(crate) condition: Option<Expr>,
    pub(crate) source: Source,
    /// True if it is the same for every value of the fact's variables: evaluated once.
    pub(crate) constant: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) rank: Expr,
    pub(crate) place: Place,
}

#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) buffer: u32,
    /// The block; none means every block.
    pub(crate) block: Option<Expr>,
    pub(crate) span: Span,
}
