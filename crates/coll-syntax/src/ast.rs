//! The syntax tree, as written: names are not resolved, numbers not computed. Every node has its span. Where text
//! could not be read the tree holds an `Error` node and the parser's list of diagnostics says why.

// Trees are small and short-lived; a box in each of them would cost readers more than it saves.
#![allow(clippy::large_enum_variant)]

use coll_base::Span;

/// A word and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The word.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// The `//!` lines at the top, without their slashes and the space that follows them.
    pub docs: Vec<String>,
    /// What it declares, in order.
    pub items: Vec<Item>,
}

/// A declaration at the top of a file.
#[derive(Clone, Debug)]
pub enum Item {
    /// `use reduce_scatter.ring`
    Use(Path),
    /// `fn half(x) = x / 2`
    Fn(FnDef),
    /// `collective broadcast(root) { … }`
    Collective(Collective),
    /// `schedule ring: allreduce { … }`
    Schedule(Schedule),
    /// `operator absmax(a, b) = …`
    Operator(Operator),
    /// Text that is none of these.
    Error(Span),
}

/// `collective.schedule`, a schedule's full name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The collective; may be a word of the language (`reduce`).
    pub collective: Name,
    /// The schedule.
    pub schedule: Name,
    /// Both.
    pub span: Span,
}

/// `fn NAME(PARAMS) = BODY`, at the top of a file or in a schedule.
#[derive(Clone, Debug)]
pub struct FnDef {
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub params: Vec<Name>,
    /// What it computes.
    pub body: Expr,
    /// All of it.
    pub span: Span,
}

/// `collective NAME(PARAMS) { … }`
#[derive(Clone, Debug)]
pub struct Collective {
    /// Its name; may be a word of the language.
    pub name: Name,
    /// Its parameters, seen by its schedules.
    pub params: Vec<Name>,
    /// `in`, `out`, `inout` declarations in order.
    pub buffers: Vec<Buffer>,
    /// `given` and `ensure` facts in order.
    pub facts: Vec<Fact>,
    /// All of it.
    pub span: Span,
}

/// `inout data[ranks]`
#[derive(Clone, Debug)]
pub struct Buffer {
    /// How it may be used.
    pub role: Role,
    /// Its name.
    pub name: Name,
    /// Number of blocks: `[ranks]` is [`ExprKind::Ranks`]; none is one block.
    pub blocks: Option<Expr>,
    /// All of it.
    pub span: Span,
}

/// The word before a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
}

/// `given …` or `ensure …`: `[each VARS [in RANGE] [where C] [at RANK]: | RANK:] BODY`
#[derive(Clone, Debug)]
pub struct Fact {
    /// `each VARS …`, if written.
    pub each: Option<FactEach>,
    /// The rank at which the fact holds, if written (`root:`, `at root:`).
    pub at: Option<Expr>,
    /// What it says.
    pub body: FactBody,
    /// All of it.
    pub span: Span,
}

/// The variables of a fact: all range over the ranks unless `in` says otherwise.
#[derive(Clone, Debug)]
pub struct FactEach {
    /// The variables; the first is where the fact holds if there is no `at`.
    pub vars: Vec<Name>,
    /// `in RANGE`, for all of them.
    pub range: Option<Range>,
    /// `where C`
    pub condition: Option<Expr>,
}

/// The body of a fact.
#[derive(Clone, Debug)]
pub enum FactBody {
    /// `given …: data[r]`
    Given(Place),
    /// `ensure …: PLACE == VALUE`
    Equal(Place, FactValue),
    /// `ensure …: r after q`
    After(Expr, Expr),
}

/// The right side of `==`.
#[derive(Clone, Debug)]
pub enum FactValue {
    /// `q.data[r]`
    Source(Source),
    /// `reduce q [in RANGE] [where C]: q.data`
    Reduce {
        /// The variable, over the ranks unless `in` says otherwise.
        var: Name,
        /// `in RANGE`
        range: Option<Range>,
        /// `where C`
        condition: Option<Expr>,
        /// What is reduced.
        source: Source,
    },
}

/// `RANK . PLACE`: the value that a rank's place holds at the start. The dot binds loosest.
#[derive(Clone, Debug)]
pub struct Source {
    /// The rank.
    pub rank: Expr,
    /// Its place.
    pub place: Place,
    /// Both.
    pub span: Span,
}

/// A block of a buffer in a contract: `data` or `data[q]`.
#[derive(Clone, Debug)]
pub struct Place {
    /// The buffer.
    pub buffer: Name,
    /// The block; none means every block.
    pub block: Option<Expr>,
    /// Both.
    pub span: Span,
}

/// `schedule NAME(PARAMS): COLLECTIVE { … }`
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The `///` lines before it, without their slashes and the space that follows them.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub params: Vec<Param>,
    /// The collective it is for.
    pub collective: Name,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// All of it.
    pub span: Span,
}

/// `k = 4`
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its default, a constant expression. The language asks for one; a missing one is reported by the parser.
    pub default: Option<Expr>,
}

/// `operator [ordered] NAME(A, B; PARAMS) = BODY [given X: E] [ensure Y: E]`
#[derive(Clone, Debug)]
pub struct Operator {
    /// Its name.
    pub name: Name,
    /// True if `ordered` is written: it does not commute.
    pub ordered: bool,
    /// The two operands.
    pub operands: [Name; 2],
    /// Parameters, set when it is used.
    pub params: Vec<Name>,
    /// What it computes.
    pub body: Expr,
    /// `given x: E`: what a rank puts in.
    pub given: Option<(Name, Expr)>,
    /// `ensure y: E`: what is made of the finished value.
    pub ensure: Option<(Name, Expr)>,
    /// All of it.
    pub span: Span,
}

/// A statement. Which may stand where is not the parser's business.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it says.
    pub kind: StmtKind,
    /// All of it, blocks included.
    pub span: Span,
}

/// The kinds of statement.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `chunks a, b`
    Chunks(Vec<Expr>),
    /// `scratch tmp[a, b]`: a name and its dimensions, none for a single slot.
    Scratch(Name, Vec<Expr>),
    /// `let x = e`
    Let(Name, Expr),
    /// `fn f(x) = e`
    Fn(FnDef),
    /// `for x in a..b [where c] { … }`
    For(For),
    /// `if c { … } [else { … }]`; `else if` is an else branch of one `if`.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// `require c [, "why"]`
    Require(Expr, Option<String>),
    /// `stage NAME { … }`
    Stage(Name, Vec<Stmt>),
    /// `step [each r [in GROUP] [where c]] { … }`
    Step(Option<StepEach>, Vec<Stmt>),
    /// `tune { lanes 2 … }`: names and values.
    Tune(Vec<(Name, TuneValue)>),
    /// `allgather.ring(data[l], k = 2) [on GROUP]`
    Call(Call),
    /// `send`, `recv`, `copy`, `reduce`, `signal`
    Transfer(Transfer),
    /// Text that is no statement.
    Error,
}

/// `for x in RANGE [where C] { … }`
#[derive(Clone, Debug)]
pub struct For {
    /// The variable.
    pub var: Name,
    /// Its values.
    pub range: Range,
    /// `where C`
    pub condition: Option<Expr>,
    /// The statements.
    pub body: Vec<Stmt>,
}

/// `each r [in GROUP] [where C]`
#[derive(Clone, Debug)]
pub struct StepEach {
    /// The variable: the rank itself.
    pub var: Name,
    /// `in GROUP`; none is all ranks.
    pub group: Option<Group>,
    /// `where C`
    pub condition: Option<Expr>,
}

/// A value in `tune`.
#[derive(Clone, Debug)]
pub enum TuneValue {
    /// `lanes 2`
    Number(Expr),
    /// `wire bf16`
    Word(Name),
}

/// A schedule used as a procedure.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its full name.
    pub path: Path,
    /// Views, in the order of the collective's buffers.
    pub views: Vec<View>,
    /// `root = p`, `k = 2`
    pub named: Vec<(Name, Expr)>,
    /// `on GROUP`; none is all ranks.
    pub on: Option<Group>,
}

/// A list of ranks.
#[derive(Clone, Debug)]
pub enum Group {
    /// `a..b`
    Range(Range),
    /// `group(i, j, k)`
    List(Vec<Expr>, Span),
    /// `group(e for k in a..b [where c])`
    For(Box<Comprehension>, Span),
}

impl Group {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Group::Range(range) => range.span,
            Group::List(_, span) | Group::For(_, span) => *span,
        }
    }
}

/// `e for k in a..b [where c]`
#[derive(Clone, Debug)]
pub struct Comprehension {
    /// The value for each `k`.
    pub value: Expr,
    /// The variable.
    pub var: Name,
    /// Its values.
    pub range: Range,
    /// `where C`
    pub condition: Option<Expr>,
}

/// `a..b` or `a..=b`
#[derive(Clone, Debug)]
pub struct Range {
    /// The first value.
    pub low: Expr,
    /// Where it ends.
    pub high: Expr,
    /// True for `..=`: `high` is the last value.
    pub inclusive: bool,
    /// All of it.
    pub span: Span,
}

/// One transfer.
#[derive(Clone, Debug)]
pub enum Transfer {
    /// `send SRC [from a] to b [as DST] [reduce [left]]`
    Send {
        /// What is read.
        source: View,
        /// The sender, outside `each`.
        from: Option<Expr>,
        /// The receiver.
        to: Expr,
        /// Where it lands; none is where it came from.
        target: Option<View>,
        /// How it lands.
        write: Write,
    },
    /// `recv SRC from a [to b] [as DST] [reduce [left]]`
    Recv {
        /// What is read at the sender.
        source: View,
        /// The sender.
        from: Expr,
        /// The receiver, outside `each`.
        to: Option<Expr>,
        /// Where it lands; none is where it came from.
        target: Option<View>,
        /// How it lands.
        write: Write,
    },
    /// `copy SRC to DST [at a]`
    Copy {
        /// What is read.
        source: View,
        /// Where it lands.
        target: View,
        /// The rank, outside `each`.
        at: Option<Expr>,
    },
    /// `reduce [left] SRC into DST [at a]`
    Reduce {
        /// What is read.
        source: View,
        /// What it is reduced into.
        target: View,
        /// The rank, outside `each`.
        at: Option<Expr>,
        /// On which side the source is put.
        write: Write,
    },
    /// `signal b [from a]`
    Signal {
        /// The sender, outside `each`.
        from: Option<Expr>,
        /// The receiver.
        to: Expr,
    },
}

/// How a value lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// It replaces what was there.
    Plain,
    /// `reduce`: what was there ⊕ what arrives.
    Reduce,
    /// `reduce left`: what arrives ⊕ what was there.
    ReduceLeft,
}

/// A buffer or scratch, and which of its chunks: `data`, `data[i]`, `data[lo..hi, j]`.
#[derive(Clone, Debug)]
pub struct View {
    /// The buffer.
    pub buffer: Name,
    /// Indices, none for all of it.
    pub index: Vec<Index>,
    /// All of it.
    pub span: Span,
}

/// One index of a view.
#[derive(Clone, Debug)]
pub enum Index {
    /// `i`
    One(Expr),
    /// `lo..hi`
    Range(Range),
    /// `e for k in a..b`
    For(Box<Comprehension>),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it says.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `12`; a number that does not fit is an error of the parser.
    Int(i64),
    /// `0.5`: only operators have them.
    Float(f64),
    /// `true`, `false`
    Bool(bool),
    /// `x`
    Name(String),
    /// `ranks`, in its place: the number of ranks.
    Ranks,
    /// `-x`, `not x`
    Unary(UnaryOp, Box<Expr>),
    /// `x + y`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `f(x, y)`
    Call(Name, Vec<Expr>),
    /// `if c { x } else { y }`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Text that is no expression.
    Error,
}

/// Operators of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum UnaryOp {
    Neg,
    Not,
}

/// Operators of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Mul,
    Div,
    Mod,
    Add,
    Sub,
    Shl,
    Shr,
    BitAnd,
    BitXor,
    BitOr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

impl BinaryOp {
    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Mod => "%",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitXor => "^",
            BinaryOp::BitOr => "|",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
        }
    }

    /// How tightly it binds: larger is tighter.
    pub fn precedence(self) -> u8 {
        match self {
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => 10,
            BinaryOp::Add | BinaryOp::Sub => 9,
            BinaryOp::Shl | BinaryOp::Shr => 8,
            BinaryOp::BitAnd => 7,
            BinaryOp::BitXor => 6,
            BinaryOp::BitOr => 5,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => 4,
            BinaryOp::And => 2,
            BinaryOp::Or => 1,
        }
    }
}
