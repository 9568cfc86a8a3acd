//! Modules: which kernels a text of PTX or an image holds.

use crate::code::{Answer, Code};
use crate::driver::Driver;
use crate::image::Image;
use crate::kernel::Kernel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was loaded.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) context: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// The entries of a text, each with the number of its parameters.
    Text(BTreeMap<String, usize>),
    Image(Arc<Image>),
}

impl Driver {
    /// Loads a module into a context.
    pub(crate) fn load(&mut self, context: u64, bytes: &[u8]) -> Answer<u64> {
        let source = if bytes.starts_with(b"\x7fELF") {
            match Image::open(bytes) {
                Ok(image) => Source::Image(Arc::new(image)),
                Err(text) => return Err(self.wrong(Code::INVALID_IMAGE, text)),
            }
        } else {
            let Ok(text) = std::str::from_utf8(bytes) else {
                return Err(self.wrong(Code::INVALID_IMAGE, "it is neither PTX nor an image of this machine"));
            };
            let entries = entries(text);
            if entries.is_empty() && !text.contains(".version") {
                return Err(self.wrong(Code::INVALID_PTX, "there is no entry and no version in the text"));
            }
            Source::Text(entries)
        };
        let handle = self.handle();
        self.modules.insert(handle, Module { context, source });
        Ok(handle)
    }

    /// The end of a module and its functions.
    pub(crate) fn unload(&mut self, module: u64) {
        self.modules.remove(&module);
        self.functions.retain(|_, (of, _)| *of != module);
    }

    /// A kernel of a module.
    pub(crate) fn function(&mut self, module: u64, name: &str) -> Answer<u64> {
        let Some(found) = self.modules.get(&module) else {
            return Err(self.wrong(Code::INVALID_HANDLE, format!("{module:#x} is no module")));
        };
        let (there, kernel, parameters) = match &found.source {
            Source::Text(entries) => {
                (entries.contains_key(name), Kernel::named(name, None), entries.get(name).copied())
            }
            Source::Image(image) => (image.has(name), Kernel::named(name, Some(image)), None),
        };
        if !there {
            return Err(self.wrong(Code::NOT_FOUND, format!("the module has no kernel {name}")));
        }
        let Some(kernel) = kernel else {
            let text = format!("the module has a kernel {name}, which the stand-in does not know");
            return Err(self.wrong(Code::NOT_FOUND, text));
        };
        let arity = kernel.arity();
        if let Some(parameters) = parameters.filter(|&parameters| parameters != 0 && parameters != arity) {
            let text = format!("kernel {name} has {arity} parameters, and {parameters} in the text");
            return Err(self.wrong(Code::INVALID_PTX, text));
        }
        if let Some((&handle, _)) =
            self.functions.iter().find(|(_, (of, known))| *of == module && known.name == name)
        {
            return Ok(handle);
        }
        let handle = self.handle();
        self.functions.insert(handle, (module, Arc::new(kernel)));
        Ok(handle)
    }
}

/// The entries of a text of PTX that others see, each with the number of its parameters.
fn entries(text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for rest in text.split(".visible").skip(1) {
        let Some(rest) = rest.trim_start().strip_prefix(".entry") else { continue };
        let Some((name, rest)) = rest.split_once('(') else { continue };
        let parameters = rest.split(')').next().map_or(0, |list| list.matches(".param").count());
        found.insert(name.trim().to_string(), parameters);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_text() {
        let text = "
            .version 8.7
            .target sm_70
            .visible .entry collc_copy(
                .param .u64 collc_copy_param_0,
                .param .u64 collc_copy_param_1,
                .param .u64 collc_copy_param_2
            )
            .maxntid 256, 1, 1
            { ret; }
            .visible .func (.param .b32 out) helper(.param .b32 in) { ret; }
            .visible .entry bare() { ret; }";
        let found = entries(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found["collc_copy"], found["bare"]), (3, 0));
    }
}
