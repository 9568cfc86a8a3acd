//! Collectives: their buffers and facts.

use super::{Entity, Named, Resolver};
use crate::codes;
use crate::resolved::{
    Buffer, Collective, Expr, ExprKind, Fact, FactBody, GLOBAL_N, GLOBAL_PARAMS, GLOBAL_ROOT, Place,
    Reduction, Source, Type,
};
use coll_base::Diagnostic;
use coll_contract::BufferRole;
use coll_syntax::ast::{self, ExprKind as AstKind, FactValue, Role};

/// The most variables of one fact.
const VARIABLES_MAX: usize = 8;

/// Resolves a collective. `resolver` sees the file's functions.
pub(crate) fn collective(mut resolver: Resolver<'_>, all: &ast::Collective) -> Collective {
    let global = |slot: usize| Entity::Global(slot as u32);
    resolver.scope.push(Named { name: "n".into(), entity: global(GLOBAL_N), span: None });
    let mut params = Vec::new();
    let mut rooted = false;
    for param in &all.params {
        let entity =
            if param.text == "root" { global(GLOBAL_ROOT) } else { global(GLOBAL_PARAMS + params.len()) };
        resolver.declare(param, entity);
        match param.text.as_str() {
            "root" => rooted = true,
            _ => params.push(param.text.clone()),
        }
    }
    let mut buffers = Vec::new();
    for buffer in &all.buffers {
        let blocks = buffer.blocks.as_ref().map(|blocks| resolver.number(blocks));
        resolver.declare(&buffer.name, Entity::Buffer(buffers.len() as u32));
        buffers.push(Buffer {
            name: buffer.name.text.clone(),
            span: buffer.name.span,
            role: role(buffer.role),
            by_rank: by_rank(buffer),
            blocks,
        });
    }
    let facts = all
        .facts
        .iter()
        .filter_map(|fact| resolver.scoped(|resolver| resolver.fact(fact, &buffers)))
        .collect();
    Collective {
        name: all.name.text.clone(),
        span: all.name.span,
        rooted,
        params,
        buffers,
        facts,
        locals: resolver.locals,
        broken: resolver.failed,
    }
}

fn role(role: Role) -> BufferRole {
    match role {
        Role::In => BufferRole::In,
        Role::Out => BufferRole::Out,
        Role::InOut => BufferRole::InOut,
    }
}

/// `[ranks]`, or `[n]`, which is the same.
fn by_rank(buffer: &ast::Buffer) -> bool {
    match buffer.blocks.as_ref().map(|blocks| &blocks.kind) {
        Some(AstKind::Ranks) => true,
        Some(AstKind::Name(name)) => name == "n",
        _ => false,
    }
}

impl Resolver<'_> {
    fn fact(&mut self, fact: &ast::Fact, buffers: &[Buffer]) -> Option<Fact> {
        let each = fact.each.as_ref();
        let range = each.and_then(|each| each.range.as_ref()).map(|range| self.range(range));
        let names = each.map(|each| each.vars.as_slice()).unwrap_or_default();
        if names.len() > VARIABLES_MAX {
            let message = format!("{} variables in one fact are more than {VARIABLES_MAX}", names.len());
            self.error(Diagnostic::new(codes::TOO_LARGE, fact.span, message));
            return None;
        }
        let vars: Vec<u32> = names.iter().map(|name| self.declare_local(name, Type::Number)).collect();
        let condition = each.and_then(|each| self.condition(&each.condition));
        let at = match (&fact.at, vars.first(), &fact.body) {
            (Some(at), _, _) => self.number(at),
            (None, Some(&first), _) => Expr { kind: ExprKind::Local(first), span: names[0].span },
            // `r after q` says itself which ranks it is about.
            (None, None, ast::FactBody::After(r, _)) => self.number(r),
            (None, None, _) => {
                let diagnostic = Diagnostic::new(
                    codes::NO_RANK,
                    fact.span,
                    "this fact does not say at which rank it holds",
                );
                self.error(diagnostic.help("write `each r: …` for every rank, or `root: …` for one"));
                return None;
            }
        };
        let body = match &fact.body {
            ast::FactBody::Given(place) => FactBody::Given(self.place(place, buffers)?),
            ast::FactBody::After(r, q) => FactBody::After(self.number(r), self.number(q)),
            ast::FactBody::Equal(place, FactValue::Source(source)) => {
                let place = self.place(place, buffers);
                let source = self.source(source, buffers);
                FactBody::Copy(place?, source?)
            }
            ast::FactBody::Equal(place, FactValue::Reduce { var, range, condition, source }) => {
                let place = self.place(place, buffers);
                let range = range.as_ref().map(|range| self.range(range));
                let reduction = self.scoped(|this| {
                    let slot = this.declare_local(var, Type::Number);
                    let condition = this.condition(condition);
                    let source = this.source(source, buffers)?;
                    let mut reduction = Reduction { slot, range, condition, source, constant: true };
                    reduction.constant = is_constant(&reduction);
                    Some(reduction)
                });
                FactBody::Reduce(place?, reduction?)
            }
        };
        Some(Fact { vars, range, condition, at, body, span: fact.span })
    }

    fn source(&mut self, source: &ast::Source, buffers: &[Buffer]) -> Option<Source> {
        let rank = self.number(&source.rank);
        Some(Source { rank, place: self.place(&source.place, buffers)? })
    }

    fn place(&mut self, place: &ast::Place, buffers: &[Buffer]) -> Option<Place> {
        let block = place.block.as_ref().map(|block| self.number(block));
        let Some(Entity::Buffer(buffer)) = self.lookup(&place.buffer.text) else {
            let message = format!("unknown buffer `{}`", place.buffer.text);
            let diagnostic = Diagnostic::new(codes::UNKNOWN_BUFFER, place.buffer.span, message);
            let near = self.nearest(&place.buffer.text, |entity| matches!(entity, Entity::Buffer(_)));
            self.error(match near {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => {
                    diagnostic.help(format!("declare it in the collective: `inout {}`", place.buffer.text))
                }
            });
            return None;
        };
        if block.is_some() && buffers[buffer as usize].blocks.is_none() {
            let message =
                format!("`{}` is a plain buffer: it has no blocks to choose from", place.buffer.text);
            let diagnostic = Diagnostic::new(codes::TOO_MANY_INDICES, place.span, message);
            self.error(
                diagnostic.help(format!(
                    "declare it `{}[ranks]` to give it a block for each rank",
                    place.buffer.text
                )),
            );
            return None;
        }
        Some(Place { buffer, block, span: place.span })
    }
}

/// Whether a reduction names no variable but its own.
fn is_constant(reduction: &Reduction) -> bool {
    let mut constant = true;
    let mut see = |slot| constant &= slot == reduction.slot;
    let bounds = reduction.range.iter().flat_map(|range| [&range.low, &range.high]);
    let all = bounds
        .chain(&reduction.condition)
        .chain([&reduction.source.rank])
        .chain(&reduction.source.place.block);
    all.for_each(|expr| expr.each_local(&mut see));
    constant
}
