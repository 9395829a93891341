//! Puts every mutant of a file into its code, each behind a switch: the program is built once for all of them.

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    BinOp, Block, Expr, ImplItemFn, Item, ItemFn, ReturnType, Stmt, Type, UnOp, parse_quote,
};

/// A small change of the code.
#[derive(Debug, Clone)]
pub struct Mutant {
    pub number: usize,
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// The function that it is in.
    pub function: String,
    /// What is changed, and into what.
    pub what: String,
}

/// The file's code with all of its mutants but these, which do not compile. Mutants are numbered from `first` on.
pub fn instrument(
    file: &str,
    text: &str,
    first: usize,
    without: &[usize],
) -> (String, Vec<Mutant>) {
    let mut code = syn::parse_file(text).expect("the file is Rust");
    let mut visitor = Visitor {
        file,
        next: first,
        without,
        function: Vec::new(),
        constant: 0,
        found: Vec::new(),
    };
    visitor.visit_file_mut(&mut code);
    (prettyplease::unparse(&code), visitor.found)
}

struct Visitor<'a> {
    file: &'a str,
    next: usize,
    without: &'a [usize],
    function: Vec<String>,
    /// How deep it is in what is computed by the compiler.
    constant: usize,
    found: Vec<Mutant>,
}

impl Visitor<'_> {
    /// The switch of another mutant; `None` where there is none.
    fn switch(&mut self, span: Span, what: String) -> Option<Expr> {
        // The product has a few mutants of its own, for its simulation.
        if self.constant > 0 || self.function.is_empty() || what.contains("is_mutant") {
            return None;
        }
        let number = self.next;
        self.next += 1;
        if self.without.contains(&number) {
            return None;
        }
        let at = span.start();
        self.found.push(Mutant {
            number,
            file: self.file.to_owned(),
            line: at.line,
            column: at.column + 1,
            function: self.function.join("::"),
            what,
        });
        let number = syn::LitInt::new(&number.to_string(), Span::call_site());
        Some(parse_quote!(crate::mutants::at(#number)))
    }

    /// Values that a function may return at once.
    fn returns(&mut self, output: &ReturnType, block: &mut Block, span: Span) {
        let values: Vec<(&str, Expr)> = match output {
            ReturnType::Default => vec![("()", parse_quote!(()))],
            ReturnType::Type(_, of) => values_of(of),
        };
        // One that does nothing anyway changes nothing.
        let is_empty = block.stmts.is_empty();
        for (words, value) in values.into_iter().filter(|_| !is_empty) {
            if let Some(switch) = self.switch(span, format!("returns {words} at once")) {
                block.stmts.insert(
                    0,
                    parse_quote! {
                        if #switch {
                            return #value;
                        }
                    },
                );
            }
        }
    }

    fn function(&mut self, name: String, is_const: bool, work: impl FnOnce(&mut Self)) {
        self.function.push(name);
        self.constant += usize::from(is_const);
        work(self);
        self.constant -= usize::from(is_const);
        self.function.pop();
    }

    /// A condition that holds although it does not, or the other way round.
    fn negated(&mut self, condition: &mut Expr, before: &Expr) {
        if has_let(before) || is_logic(before) {
            return;
        }
        let words = shortened(before);
        if let Some(switch) = self.switch(condition.span(), format!("{words} is negated")) {
            let inner = condition.clone();
            *condition = parse_quote!(((#inner) != #switch));
        }
    }
}

/// `&&`, `||` and comparisons have mutants of their own.
fn is_logic(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(it) => !matches!(it.op, BinOp::BitAnd(_) | BinOp::BitOr(_) | BinOp::BitXor(_)),
        Expr::Paren(it) => is_logic(&it.expr),
        Expr::Lit(_) => true,
        _ => false,
    }
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(it) => has_let(&it.left) || has_let(&it.right),
        Expr::Paren(it) => has_let(&it.expr),
        _ => false,
    }
}

fn shortened(of: &impl ToTokens) -> String {
    let text = of.to_token_stream().to_string();
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("`{}…`", &text[..at]),
        None => format!("`{text}`"),
    }
}

fn values_of(of: &Type) -> Vec<(&'static str, Expr)> {
    let Type::Path(path) = of else {
        return Vec::new();
    };
    let Some(last) = path.path.segments.last() else {
        return Vec::new();
    };
    let argument = || match &last.arguments {
        syn::PathArguments::AngleBracketed(it) => it.args.first().cloned(),
        _ => None,
    };
    match last.ident.to_string().as_str() {
        "bool" => vec![("true", parse_quote!(true)), ("false", parse_quote!(false))],
        "usize" | "u8" | "u16" | "u32" | "u64" | "u128" | "i8" | "i16" | "i32" | "i64" => {
            vec![("0", parse_quote!(0)), ("1", parse_quote!(1))]
        }
        "Option" => vec![("None", parse_quote!(None))],
        "String" => vec![("\"\"", parse_quote!(String::new()))],
        "Vec" => vec![("[]", parse_quote!(Vec::new()))],
        "Duration" => vec![("0s", parse_quote!(std::time::Duration::ZERO))],
        "Result" => match argument() {
            Some(syn::GenericArgument::Type(Type::Tuple(it))) if it.elems.is_empty() => {
                vec![("Ok(())", parse_quote!(Ok(())))]
            }
            Some(syn::GenericArgument::Type(inner)) => {
                let inner = values_of(&inner).into_iter();
                inner
                    .map(|(words, value)| (words, parse_quote!(Ok(#value))))
                    .collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|it| {
        let text = it.to_token_stream().to_string().replace(' ', "");
        text.contains("cfg(test)") || text == "#[test]" || text.contains("cfg(all(test")
    })
}

impl VisitMut for Visitor<'_> {
    fn visit_item_mut(&mut self, item: &mut Item) {
        let attributes = match item {
            Item::Fn(it) => &it.attrs,
            Item::Mod(it) => &it.attrs,
            Item::Impl(it) => &it.attrs,
            Item::Const(_) | Item::Static(_) | Item::Macro(_) | Item::Use(_) => return,
            _ => return visit_mut::visit_item_mut(self, item),
        };
        if !is_test(attributes) {
            visit_mut::visit_item_mut(self, item);
        }
    }

    fn visit_item_fn_mut(&mut self, it: &mut ItemFn) {
        let (name, span) = (it.sig.ident.to_string(), it.sig.ident.span());
        self.function(name, it.sig.constness.is_some(), |this| {
            visit_mut::visit_block_mut(this, &mut it.block);
            this.returns(&it.sig.output, &mut it.block, span);
        });
    }

    fn visit_impl_item_fn_mut(&mut self, it: &mut ImplItemFn) {
        if is_test(&it.attrs) {
            return;
        }
        let (name, span) = (it.sig.ident.to_string(), it.sig.ident.span());
        self.function(name, it.sig.constness.is_some(), |this| {
            visit_mut::visit_block_mut(this, &mut it.block);
            this.returns(&it.sig.output, &mut it.block, span);
        });
    }

    fn visit_trait_item_fn_mut(&mut self, it: &mut syn::TraitItemFn) {
        let (name, span) = (it.sig.ident.to_string(), it.sig.ident.span());
        if let Some(block) = &mut it.default {
            self.function(name, false, |this| {
                visit_mut::visit_block_mut(this, block);
                this.returns(&it.sig.output, block, span);
            });
        }
    }

    fn visit_impl_item_const_mut(&mut self, _: &mut syn::ImplItemConst) {}

    fn visit_type_mut(&mut self, _: &mut Type) {}

    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}

    fn visit_macro_mut(&mut self, _: &mut syn::Macro) {}

    fn visit_expr_repeat_mut(&mut self, it: &mut syn::ExprRepeat) {
        self.visit_expr_mut(&mut it.expr);
    }

    fn visit_stmt_mut(&mut self, statement: &mut Stmt) {
        let before = statement.clone();
        visit_mut::visit_stmt_mut(self, statement);
        let (Stmt::Expr(expr, Some(_)), Stmt::Expr(before, _)) = (&*statement, &before) else {
            return;
        };
        let is_effect = matches!(
            expr,
            Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) | Expr::Binary(_) | Expr::Try(_)
        );
        if !is_effect {
            return;
        }
        let (words, span) = (shortened(before), before.span());
        if let Some(switch) = self.switch(span, format!("{words} is left out")) {
            let inner = expr.clone();
            *statement = parse_quote! {
                if !#switch {
                    #inner;
                }
            };
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        let before = arm.guard.clone();
        visit_mut::visit_arm_mut(self, arm);
        if let (Some((_, guard)), Some((_, before))) = (&mut arm.guard, before) {
            self.negated(guard, &before);
        }
    }

    fn visit_expr_if_mut(&mut self, it: &mut syn::ExprIf) {
        let before = it.cond.clone();
        visit_mut::visit_expr_if_mut(self, it);
        self.negated(&mut it.cond, &before);
    }

    fn visit_expr_while_mut(&mut self, it: &mut syn::ExprWhile) {
        let before = it.cond.clone();
        visit_mut::visit_expr_while_mut(self, it);
        self.negated(&mut it.cond, &before);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let before = match &*expr {
            Expr::Binary(_) | Expr::Unary(_) => expr.clone(),
            _ => return visit_mut::visit_expr_mut(self, expr),
        };
        visit_mut::visit_expr_mut(self, expr);
        match (&*expr, &before) {
            (Expr::Binary(it), Expr::Binary(before)) => self.binary(&it.clone(), before, expr),
            (Expr::Unary(it), _) if matches!(it.op, UnOp::Not(_)) => {
                let (inner, words) = (it.clone(), shortened(&before));
                if let Some(switch) = self.switch(inner.span(), format!("{words} without !")) {
                    *expr = parse_quote!(((#inner) != #switch));
                }
            }
            _ => {}
        }
    }
}

impl Visitor<'_> {
    fn binary(&mut self, it: &syn::ExprBinary, before: &syn::ExprBinary, expr: &mut Expr) {
        let (left, right, span) = (&it.left, &it.right, it.op.span());
        let words = shortened(before);
        match it.op {
            BinOp::And(_) | BinOp::Or(_) => {
                let is_and = matches!(it.op, BinOp::And(_));
                let mut sides = [left, right].map(|side| (**side).clone());
                for (side, before) in sides.iter_mut().zip([&before.left, &before.right]) {
                    if has_let(before) {
                        continue;
                    }
                    let what = format!("{} of {words} is left out", shortened(before));
                    if let Some(switch) = self.switch(span, what) {
                        let inner = side.clone();
                        *side = match is_and {
                            true => parse_quote!((#inner || #switch)),
                            false => parse_quote!((#inner && !#switch)),
                        };
                    }
                }
                let ([left, right], op) = (sides, it.op);
                *expr = parse_quote!(#left #op #right);
            }
            BinOp::Eq(_) | BinOp::Ne(_) => {
                if let Some(switch) = self.switch(span, format!("{words} is negated")) {
                    *expr = parse_quote!(((#it) != #switch));
                }
            }
            BinOp::Lt(_) | BinOp::Gt(_) | BinOp::Le(_) | BinOp::Ge(_) => {
                let is_open = matches!(it.op, BinOp::Lt(_) | BinOp::Gt(_));
                let op = it.op;
                let mut changed: Expr = Expr::Binary(it.clone());
                if let Some(switch) = self.switch(span, format!("{words} with its limit moved")) {
                    changed = match is_open {
                        true => parse_quote!(match (&(#left), &(#right)) {
                            (l, r) => l #op r || #switch && l == r,
                        }),
                        false => parse_quote!(match (&(#left), &(#right)) {
                            (l, r) => l #op r && !(#switch && l == r),
                        }),
                    };
                }
                if let Some(switch) = self.switch(span, format!("{words} is negated")) {
                    changed = parse_quote!(((#changed) != #switch));
                }
                *expr = changed;
            }
            BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) => {
                let op = it.op;
                let other: BinOp = match op {
                    BinOp::Add(_) => parse_quote!(-),
                    BinOp::Sub(_) => parse_quote!(+),
                    BinOp::Mul(_) => parse_quote!(/),
                    _ => parse_quote!(*),
                };
                let what = format!("{words} with {}", other.to_token_stream());
                if let Some(switch) = self.switch(span, what) {
                    *expr = parse_quote!(match (#left, #right) {
                        (l, r) => if #switch { l #other r } else { l #op r },
                    });
                }
            }
            _ => {}
        }
    }
}
