fn main() {
    let s =
        threadline_session::Session::from_bytes(&std::fs::read(std::env::args().nth(1).unwrap()).unwrap());
    let mut out = String::from("{\"messages\":");
    match s.replay() {
        None => out.push_str("null"),
        Some(m) => {
            out.push('[');
            for (i, m) in m.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                m.write_json(&mut out);
            }
            out.push(']');
        }
    }
    out.push('}');
    println!("{out}");
}
