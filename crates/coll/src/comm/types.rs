//! The two element types that a call may say beside its own: what narrow floats are reduced in, and what wider floats travel
//! as ([decision 8](../../../../docs/decisions/0008-types-in-plans.md)). What a call asks for goes before what the communicator
//! was told.

use crate::comm::CommError;
use crate::comm::engine::Engine;
use crate::comm::error::Refusal;
use crate::comm::request::What;
use crate::comm::resolve::Key;
use coll_base::DType;

/// Two types, none of which needs to be said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Types {
    /// What narrow floats are reduced in.
    pub(crate) accumulate: Option<DType>,
    /// What wider floats travel as.
    pub(crate) wire: Option<DType>,
}

/// What a call asks for: nothing, or a type, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) accumulate: Option<Option<DType>>,
    pub(crate) wire: Option<Option<DType>>,
}

impl Asked {
    #[inline]
    fn is_nothing(self) -> bool {
        self.accumulate.is_none() && self.wire.is_none()
    }
}

impl Types {
    #[inline]
    pub(crate) fn is_nothing(self) -> bool {
        self.accumulate.is_none() && self.wire.is_none()
    }

    /// What is wrong with them, if anything.
    pub(crate) fn fault(self) -> Option<String> {
        let accumulate = self.accumulate.filter(|&dtype| dtype != DType::F32);
        let accumulate = accumulate
            .map(|dtype| format!("nothing can be accumulated in {dtype}; narrow floats can be in f32"));
        let wire = self.wire.filter(|dtype| !dtype.is_wire()).map(|dtype| {
            let known = DType::WIRE.map(|dtype| dtype.name()).join(", ");
            format!("nothing can travel as {dtype}; there are {known}")
        });
        accumulate.or(wire)
    }

    /// What they mean for elements of a type: others are as if nothing had been said. A reduction's working elements may
    /// be wider than its own, so that what travels may be what they are.
    fn of(self, dtype: DType, reduces: bool) -> Types {
        let is_wider = |wire: &DType| reduces || wire.size_bytes() < dtype.part().size_bytes();
        Types {
            accumulate: self.accumulate.filter(|_| reduces && dtype.is_narrow_float()),
            wire: self.wire.filter(|_| dtype.part().is_float()).filter(is_wider),
        }
    }
}

impl Engine {
    /// Completes a call's key: what the communicator was told, unless the call asks for something else.
    #[inline]
    pub(crate) fn settle(&mut self, key: &mut Key, asked: Asked) -> Result<(), CommError> {
        key.deterministic = self.settings.deterministic;
        if asked.is_nothing() && self.settings.types.is_nothing() {
            return Ok(());
        }
        match self.types(key, asked) {
            Ok(types) => {
                key.types = types;
                Ok(())
            }
            Err(reason) => {
                let call = key.what.collective().unwrap_or("the call").to_string();
                Err(self.refuse(Refusal::Everywhere(reason), call))
            }
        }
    }

    #[cold]
    fn types(&self, key: &Key, asked: Asked) -> Result<Types, String> {
        let told = self.settings.types;
        let types = Types {
            accumulate: asked.accumulate.unwrap_or(told.accumulate),
            wire: asked.wire.unwrap_or(told.wire),
        };
        if let Some(fault) = types.fault() {
            return Err(fault);
        }
        if key.what == What::Custom {
            return match asked.accumulate.flatten().or(asked.wire.flatten()) {
                None => Ok(Types::default()),
                Some(_) => Err("a schedule of one's own says by `tune` what it accumulates in and what \
                                elements travel as; the call cannot"
                    .to_string()),
            };
        }
        let reduces = key.what.reduces();
        let types = types.of(key.dtype, reduces);
        match types.wire {
            Some(wire) if reduces && key.deterministic => Err(format!(
                "elements that travel as {wire} are rounded where they are sent, and which those are depends on sizes; a \
                 deterministic call cannot have that: leave one of the two out"
            )),
            _ => Ok(types),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_for_a_type_is_as_if_it_had_not_been_said() {
        let told = Types { accumulate: Some(DType::F32), wire: Some(DType::Bf16) };
        let kept = |dtype, reduces| {
            let Types { accumulate, wire } = told.of(dtype, reduces);
            [accumulate.is_some(), wire.is_some()]
        };
        assert_eq!(kept(DType::F16, true), [true, true]);
        assert_eq!(kept(DType::F32, true), [false, true]);
        assert_eq!(kept(DType::C64, false), [false, true]);
        assert_eq!(kept(DType::F64, false), [false, true]);
        assert_eq!(kept(DType::Bf16, false), [false, false]);
        assert_eq!(kept(DType::I64, true), [false, false]);
        assert_eq!(told.fault(), None);
        assert!(Types { accumulate: Some(DType::F64), wire: None }.fault().is_some());
        assert!(Types { accumulate: None, wire: Some(DType::I8) }.fault().is_some());
    }
}
