//! The page about traces documents every attribute and variable.

#[test]
fn every_attribute_and_variable_is_documented() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trace.md")).unwrap();
    let missing: Vec<_> =
        threadline_trace::attribute::ALL.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for name in threadline_trace::VARIABLES {
        let short = name.replace("OTEL_EXPORTER_OTLP_TRACES_", "…_").replace("OTEL_EXPORTER_OTLP_", "…_");
        assert!(page.contains(&format!("`{name}`")) || page.contains(&format!("`{short}`")), "{name}");
    }
}
