//! A user's operator as CUDA C++: its expressions, with the rules of the interpreter, and its entries.

use crate::entry::{ARITIES, Entry, Shape};
use crate::source::module;
use crate::working::element;
use coll_base::DType;
use coll_kernel::{Binary, Expr, Reducer, Unary, UserOperator};

/// The entry that makes working elements of elements.
pub(crate) const PREPARE: &str = "collc_user_prepare";
/// The entry that makes elements of working elements.
pub(crate) const FINISH: &str = "collc_user_finish";

/// The largest expression, so that a run never waits for its compiler.
const NODES_MAX: usize = 4000;

/// The entry that combines so many operands.
pub(crate) fn combine_name(sources: usize) -> String {
    format!("collc_user_combine{sources}")
}

/// The whole text of an operator for an element type and values of its parameters, which `reducer` was made of.
pub(crate) fn source(operator: &UserOperator, params: &[f64], reducer: &Reducer) -> Result<String, String> {
    let memory = reducer.dtype();
    let working = if reducer.is_in_f32() { DType::F32 } else { memory };
    let expressions = [Some(&operator.combine), operator.given.as_ref(), operator.ensure.as_ref()];
    let nodes: usize = expressions.into_iter().flatten().map(nodes).sum();
    if nodes > NODES_MAX {
        return Err(format!(
            "it has {nodes} operations, constants and operands, and {NODES_MAX} are the most for a GPU"
        ));
    }
    let writer = Writer { params, is_float: working.is_float(), is_f64: working == DType::F64 };
    let mut own = combine(&writer.number(&operator.combine), element(working));
    let (outer, inner) = (element(memory), element(working));
    let mut entries: Vec<Entry> =
        ARITIES.map(|sources| Entry::combine(combine_name(sources), sources, "User", "count")).into();
    for (name, expr, from, to) in
        [(PREPARE, &operator.given, outer, inner), (FINISH, &operator.ensure, inner, outer)]
    {
        let function = match expr {
            Some(expr) => {
                let function = if name == PREPARE { "Given" } else { "Ensure" };
                own.push_str(&mapped(function, &writer.number(expr), from, to, inner));
                function.to_string()
            }
            None if reducer.is_in_f32() => format!("Convert<{from}, {to}>"),
            None => continue,
        };
        let body = vec![format!("map(to, from, count, {function}());")];
        entries.push(Entry::new(name.into(), Shape::Map, body));
    }
    let widths = widths(reducer.working_size_bytes(), memory.size_bytes());
    Ok(module(&format!("namespace collc {{\n\n{own}}} // namespace collc\n\n{widths}"), &entries))
}

/// What names do not say of a user's entries: a host that runs them may want to know how wide elements are.
fn widths(working_bytes: u64, element_bytes: u64) -> String {
    format!(
        "#ifdef COLLC_HOST
extern \"C\" {{
collc::u64 collc_user_working_bytes = {working_bytes}, collc_user_element_bytes = {element_bytes};
}}
#endif

"
    )
}

fn combine(expr: &str, element: &str) -> String {
    format!(
        "struct User : Each<User, {element}::Bits> {{
    COLLC_FN Bits combine(Bits left, Bits right) {{
        typedef {element}::Number N;
        const N a = {element}::load(left), b = {element}::load(right);
        return {element}::store({expr});
    }}
}};

"
    )
}

fn mapped(name: &str, expr: &str, from: &str, to: &str, number: &str) -> String {
    format!(
        "struct {name} : Function<{from}::Bits, {to}::Bits> {{
    COLLC_METHOD To operator()(From bits) const {{
        typedef {number}::Number N;
        const N x = {from}::load(bits);
        return {to}::store({expr});
    }}
}};

"
    )
}

fn nodes(expr: &Expr) -> usize {
    let (mut open, mut found) = (vec![expr], 0usize);
    while let Some(expr) = open.pop() {
        found += 1;
        match expr {
            Expr::Unary(_, x) => open.push(x),
            Expr::Binary(_, x, y) => open.extend([&**x, &**y]),
            Expr::If(condition, x, y) => open.extend([&**condition, &**x, &**y]),
            Expr::Left | Expr::Right | Expr::Input | Expr::Param(_) => {}
            Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) => {}
        }
    }
    found
}

/// Writes expressions. That they suit the type was found when the reducer was made.
struct Writer<'a> {
    params: &'a [f64],
    is_float: bool,
    is_f64: bool,
}

impl Writer<'_> {
    /// An expression of `a` and `b`, or of `x`.
    fn number(&self, expr: &Expr) -> String {
        match expr {
            Expr::Left => "a".into(),
            Expr::Right => "b".into(),
            Expr::Input => "x".into(),
            Expr::Param(index) => self.real(self.params[*index as usize]),
            Expr::Int(value) if !self.is_float => integer(i128::from(*value)),
            // From a whole number to `f32` directly: by way of `f64` it would be rounded twice.
            Expr::Int(value) if !self.is_f64 => single(*value as f32),
            Expr::Int(value) => self.real(*value as f64),
            Expr::Float(value) => self.real(*value),
            Expr::Bool(value) => value.to_string(),
            Expr::Unary(op, x) => format!("{}({})", unary(*op), self.number(x)),
            Expr::Binary(op, x, y) => self.binary(*op, x, y),
            Expr::If(condition, x, y) => {
                format!("({} ? {} : {})", self.number(condition), self.number(x), self.number(y))
            }
        }
    }

    fn binary(&self, op: Binary, x: &Expr, y: &Expr) -> String {
        let (x, y) = (self.number(x), self.number(y));
        match written(op) {
            Written::Function(name) => format!("{name}({x}, {y})"),
            Written::Between(sign) => format!("({x} {sign} {y})"),
        }
    }

    /// A number with a point, in the type that elements are computed in.
    fn real(&self, value: f64) -> String {
        match (self.is_float, self.is_f64) {
            (true, true) => format!("f64_of({:#018x}u) /* {value:?} */", value.to_bits()),
            (true, false) => single(value as f32),
            // A parameter, whose value the type holds.
            (false, _) => integer(value as i128),
        }
    }
}

/// By its bits, so that no compiler rounds it.
fn single(value: f32) -> String {
    format!("f32_of({:#010x}u) /* {value:?} */", value.to_bits())
}

/// Any bits of 64 are of one type whose cast to the element's type is the value.
fn integer(value: i128) -> String {
    match value {
        0..=0x7fff_ffff => format!("(N){value}"),
        _ => format!("(N){:#x}u", value as u64),
    }
}

fn unary(op: Unary) -> &'static str {
    match op {
        Unary::Neg => "neg",
        Unary::Abs => "abs",
        Unary::Sqrt => "sqrt",
        Unary::Not => "!",
    }
}

enum Written {
    Function(&'static str),
    Between(&'static str),
}

fn written(op: Binary) -> Written {
    use Written::{Between, Function};
    match op {
        Binary::Add => Function("add"),
        Binary::Sub => Function("sub"),
        Binary::Mul => Function("mul"),
        Binary::Div => Function("div"),
        Binary::Mod => Function("modulo"),
        Binary::Min => Function("lesser"),
        Binary::Max => Function("greater"),
        Binary::BitAnd => Function("bit_and"),
        Binary::BitOr => Function("bit_or"),
        Binary::BitXor => Function("bit_xor"),
        Binary::Shl => Function("shl"),
        Binary::Shr => Function("shr"),
        Binary::Eq => Between("=="),
        Binary::Ne => Between("!="),
        Binary::Lt => Between("<"),
        Binary::Le => Between("<="),
        Binary::Gt => Between(">"),
        Binary::Ge => Between(">="),
        Binary::And => Between("&"),
        Binary::Or => Between("|"),
    }
}
