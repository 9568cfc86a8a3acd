//! XML as a tree of elements with places. It knows no entities but XML's own five, so none can grow, and it has bounds.

use crate::codes;
use coll_base::{Diagnostic, FileId, Span};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// The most elements that are read.
const ELEMENTS_MAX: usize = 1_000_000;
/// The deepest that elements are nested.
const DEPTH_MAX: usize = 128;
/// The longest value of an attribute.
const VALUE_MAX_BYTES: usize = 1 << 20;

/// An element; the first of a tree is its root.
pub(super) struct Element {
    pub(super) tag: String,
    pub(super) attributes: Vec<Attribute>,
    pub(super) children: Vec<usize>,
    /// Its opening tag.
    pub(super) span: Span,
}

/// A name and a value, with its place.
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) span: Span,
}

impl Element {
    /// An attribute that is there and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name && !attribute.value.trim().is_empty())
    }
}

/// Reads a text as a tree, or says why it is none.
pub(super) fn parse(file: FileId, text: &str) -> Result<Vec<Element>, Diagnostic> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_comments = false;
    let mut tree = Tree { file, text, elements: Vec::new(), open: Vec::new() };
    loop {
        let start = reader.buffer_position() as usize;
        let event = reader.read_event();
        let end = (reader.buffer_position() as usize).min(text.len());
        let span = tree.span(start, end);
        match event {
            Err(error) => {
                let at = (reader.error_position() as usize).min(text.len());
                let message = format!("this is no XML: {error}");
                return Err(Diagnostic::new(codes::FORM, tree.span(at, at), message));
            }
            Ok(Event::Start(tag)) => {
                let element = tree.element(&tag, span)?;
                tree.open.push(element);
            }
            Ok(Event::Empty(tag)) => {
                tree.element(&tag, span)?;
            }
            Ok(Event::End(_)) => {
                tree.open.pop();
            }
            Ok(Event::DocType(_)) => {
                return Err(Diagnostic::new(codes::FORM, span, "this XML declares a document type")
                    .note("a topology needs none, and entities that it declares could grow beyond bounds")
                    .help("remove the line"));
            }
            Ok(Event::GeneralRef(_)) => {
                return Err(Diagnostic::new(
                    codes::FORM,
                    span,
                    "a topology has no text between its elements",
                ));
            }
            Ok(Event::Text(words)) => {
                let words: &[u8] = &words;
                if !words.iter().all(u8::is_ascii_whitespace) && words != "\u{feff}".as_bytes() {
                    let message = "a topology has no text between its elements";
                    return Err(Diagnostic::new(codes::FORM, span, message));
                }
            }
            Ok(Event::CData(_)) => {
                return Err(Diagnostic::new(
                    codes::FORM,
                    span,
                    "a topology has no text between its elements",
                ));
            }
            Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => {}
            Ok(Event::Eof) => break,
        }
    }
    if let Some(&open) = tree.open.last() {
        let element = &tree.elements[open];
        let message = format!("`<{}>` is never closed", element.tag);
        return Err(
            Diagnostic::new(codes::FORM, element.span, message).help("the file may have been cut short")
        );
    }
    if tree.elements.is_empty() {
        return Err(Diagnostic::new(codes::FORM, tree.span(0, 0), "there is no element in this XML"));
    }
    Ok(tree.elements)
}

struct Tree<'t> {
    file: FileId,
    text: &'t str,
    elements: Vec<Element>,
    open: Vec<usize>,
}

impl Tree<'_> {
    /// A place within the text, and between its letters.
    fn span(&self, start: usize, end: usize) -> Span {
        let inside = |mut at: usize| {
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        Span::new(self.file, inside(start), inside(end))
    }

    fn element(&mut self, tag: &BytesStart<'_>, span: Span) -> Result<usize, Diagnostic> {
        let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
        if self.elements.len() >= ELEMENTS_MAX {
            let message = format!("this XML has more than {ELEMENTS_MAX} elements");
            return Err(Diagnostic::new(codes::BOUNDS, span, message));
        }
        if self.open.len() >= DEPTH_MAX {
            let message = format!("elements are nested deeper than {DEPTH_MAX} levels");
            return Err(Diagnostic::new(codes::BOUNDS, span, message));
        }
        if self.open.is_empty() && !self.elements.is_empty() {
            let message = format!("`<{name}>` stands beside the first element");
            return Err(
                Diagnostic::new(codes::FORM, span, message).expected("one element that holds all others")
            );
        }
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| {
                Diagnostic::new(
                    codes::FORM,
                    span,
                    format!("an attribute of `<{name}>` cannot be read: {error}"),
                )
            })?;
            let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
            // The value is a part of the text: how far in tells where.
            let offset = (attribute.value.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
            let is_inside =
                offset.checked_add(attribute.value.len()).is_some_and(|end| end <= self.text.len());
            let place = if is_inside { self.span(offset, offset + attribute.value.len()) } else { span };
            if attribute.value.len() > VALUE_MAX_BYTES {
                let message = format!("attribute `{key}` has more than {VALUE_MAX_BYTES} bytes");
                return Err(Diagnostic::new(codes::BOUNDS, span, message));
            }
            let value = attribute.unescape_value().map_err(|error| {
                Diagnostic::new(codes::FORM, place, format!("attribute `{key}` cannot be read: {error}"))
            })?;
            attributes.push(Attribute { name: key, value: value.into_owned(), span: place });
        }
        let at = self.elements.len();
        self.elements.push(Element { tag: name, attributes, children: Vec::new(), span });
        if let Some(&parent) = self.open.last() {
            self.elements[parent].children.push(at);
        }
        Ok(at)
    }
}
