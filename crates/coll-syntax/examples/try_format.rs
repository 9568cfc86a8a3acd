//! x
fn main() {
    for p in std::env::args().skip(1) {
        let t = std::fs::read_to_string(&p).unwrap();
        let r = coll_syntax::format(coll_base::FileId(0), &t).unwrap();
        println!("{r}");
        assert_eq!(coll_syntax::format(coll_base::FileId(0), &r).unwrap(), r);
    }
}
