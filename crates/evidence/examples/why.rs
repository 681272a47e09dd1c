use threadline_evidence::*;
use threadline_session::*;
fn main() {
    for path in std::env::args().skip(1) {
        let family = SessionFamily::new(Session::from_bytes(&std::fs::read(&path).unwrap()), vec![]);
        let e = FileEvidence::of(&family, &LogOnly);
        for c in e.net_changes(&|_| true) {
            if c.before.content.is_some() && c.after.content.is_some() { println!("OK"); continue; }
            let why = if c.before.content.is_none() { "BEFORE" } else { "AFTER" };
            let last = c.unrecorded.last().map(|p| {
                let s = family.session(p.agent); let call = &s.tool_calls()[p.call_idx];
                let i = call.block(s).and_then(|b| b.input()); 
                format!("{} {}", call.name, i.and_then(|i| i.get("command")).and_then(|c| c.as_str()).unwrap_or_default().replace('\n', "|").chars().take(160).collect::<String>())
            });
            println!("{why} chain={} {} {:?}", c.is_chain, c.path.rsplit('/').next().unwrap(), last);
        }
    }
}
