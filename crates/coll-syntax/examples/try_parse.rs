fn main() {
    for p in std::env::args().skip(1) {
        let t = std::fs::read_to_string(&p).unwrap();
        let t0 = std::time::Instant::now();
        let r = coll_syntax::parse(coll_base::FileId(0), &t);
        println!("{p}: {} items {} diags {:?}", r.file.items.len(), r.diagnostics.len(), t0.elapsed());
        for d in &r.diagnostics {
            let s = d.primary.as_ref().map(|l| l.span);
            let (l, c) = s.map_or((0, 0), |s| {
                let b = &t[..s.start as usize];
                (b.matches('\n').count() + 1, b.len() - b.rfind('\n').map_or(0, |x| x + 1) + 1)
            });
            println!(
                "  {} {l}:{c} {} | exp {:?} | found {:?} | {:?}",
                d.code,
                d.message,
                d.expected.clone().unwrap_or_default(),
                d.found.clone().unwrap_or_default(),
                d.help.clone().unwrap_or_default()
            );
            for s in &d.secondary {
                let b = &t[..s.span.start as usize];
                println!("      also {}: {}", b.matches('\n').count() + 1, s.text)
            }
        }
    }
}
