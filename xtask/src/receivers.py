"""Prints the spans that a receiver stored, one JSON object per span. Run by `cargo xtask receivers`."""

import json
import sys
import urllib.request


def nanos(text):
    from datetime import datetime

    return int(round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000))


def number(attributes, *names):
    for name in names:
        if attributes.get(name) is not None:
            return int(attributes[name])
    return None


def mlflow(url):
    import mlflow

    mlflow.set_tracking_uri(url)
    client = mlflow.MlflowClient()
    token = None
    while True:
        page = client.search_traces(locations=["0"], max_results=100, page_token=token)
        for trace in page:
            session = trace.info.trace_metadata.get("mlflow.trace.session")
            for span in trace.data.spans:
                attributes = {key: span.get_attribute(key) for key in span.attributes}
                yield {
                    "trace": span._trace_id if len(str(span._trace_id)) == 32 else trace.info.trace_id,
                    "otel": format(span._span.context.trace_id, "032x"),
                    "span": span.span_id,
                    "parent": span.parent_id,
                    "start": span.start_time_ns // 1_000_000,
                    "end": (span.end_time_ns or 0) // 1_000_000,
                    "error": "ERROR" in str(span.status.status_code),
                    "session": attributes.get("session.id") or session,
                    "input": number(attributes, "gen_ai.usage.input_tokens"),
                    "output": number(attributes, "gen_ai.usage.output_tokens"),
                }
        token = page.token
        if not token:
            return


def phoenix(url):
    cursor = ""
    while True:
        with urllib.request.urlopen(f"{url}/v1/projects/default/spans?limit=500{cursor}") as answer:
            page = json.load(answer)
        for span in page["data"]:
            attributes = span.get("attributes") or {}
            yield {
                "otel": span["context"]["trace_id"],
                "span": span["context"]["span_id"],
                "parent": span.get("parent_id"),
                "start": nanos(span["start_time"]),
                "end": nanos(span["end_time"]),
                "error": span["status_code"] == "ERROR",
                "session": attributes.get("session.id"),
                "input": number(attributes, "llm.token_count.prompt", "gen_ai.usage.input_tokens"),
                "output": number(attributes, "llm.token_count.completion", "gen_ai.usage.output_tokens"),
            }
        if not page.get("next_cursor"):
            return
        cursor = f"&cursor={page['next_cursor']}"


for span in {"mlflow": mlflow, "phoenix": phoenix}[sys.argv[1]](sys.argv[2]):
    print(json.dumps(span))
