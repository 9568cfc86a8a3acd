//! The parser that pest makes of `/grammar/coll.pest`, and what each of its rules is called in a message.

// What the derive makes has no documentation of its own.
#![allow(missing_docs, unreachable_pub)]

use pest_derive::Parser;

#[derive(Parser)]
#[grammar = "../grammar/coll.pest"]
pub(crate) struct Grammar;

/// A rule in the words of the manual, as in "expected …". `None` for rules that say nothing to a reader.
pub(crate) fn wording(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::lparen => "`(`",
        Rule::rparen => "`)`",
        Rule::lbracket => "`[`",
        Rule::rbracket => "`]`",
        Rule::lbrace => "`{`",
        Rule::rbrace => "`}`",
        Rule::comma => "`,`",
        Rule::colon => "`:`",
        Rule::semicolon => "`;`",
        Rule::dot => "`.`",
        Rule::assign => "`=`",
        Rule::equals => "`==`",
        Rule::range_op => "`..`",
        Rule::binary => "an operator",
        Rule::ident | Rule::named => "a name",
        Rule::param => "a parameter",
        Rule::word => "a collective's name",
        Rule::number => "an expression",
        Rule::string => "a text in quotes",
        Rule::path => "`collective.schedule`",
        Rule::view => "a buffer or scratch",
        Rule::place => "a buffer",
        Rule::source => "`RANK.place`",
        Rule::index => "an index",
        Rule::range => "a range `a..b`",
        Rule::group => "a range or a group",
        Rule::expr | Rule::name | Rule::paren | Rule::if_expr | Rule::neg | Rule::kw_not => "an expression",
        Rule::kw_true | Rule::kw_false => "an expression",
        Rule::tune_entry => "a name and its value",
        Rule::only_stmt | Rule::call => "a statement",
        Rule::only_item | Rule::item_word => "a declaration",
        Rule::only_fact | Rule::fact_word => "`in`, `out`, `inout`, `given` or `ensure`",
        Rule::stmt_start | Rule::item_start => "the next statement",
        Rule::EOI => "the end of the file",
        Rule::names | Rule::params | Rule::operands => "`(`",
        Rule::body | Rule::contract | Rule::arm => "`{`",
        Rule::condition | Rule::kw_where => "`where`",
        Rule::for_tail | Rule::kw_for | Rule::for_ => "`for`",
        Rule::op_given | Rule::given | Rule::kw_given => "`given`",
        Rule::op_ensure | Rule::ensure | Rule::kw_ensure => "`ensure`",
        Rule::from | Rule::kw_from => "`from`",
        Rule::to | Rule::kw_to => "`to`",
        Rule::as_ | Rule::kw_as => "`as`",
        Rule::at | Rule::fact_at | Rule::kw_at => "`at`",
        Rule::landing | Rule::reduced | Rule::kw_reduce | Rule::reduce => "`reduce`",
        Rule::step_each | Rule::fact_each | Rule::kw_each => "`each`",
        Rule::kw_in => "`in`",
        Rule::kw_into => "`into`",
        Rule::kw_on => "`on`",
        Rule::kw_after => "`after`",
        Rule::kw_else => "`else`",
        Rule::kw_if => "`if`",
        Rule::kw_left => "`left`",
        Rule::kw_group => "`group`",
        Rule::kw_ordered => "`ordered`",
        _ => return None,
    })
}
