//! The configuration of servers, such as `.mcp.json`.

use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

/// A server as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerConfig {
    /// The name of the server.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// A child process that reads requests from standard input.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that are added to its environment.
        env: BTreeMap<String, String>,
    },
    /// A server over HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of each request, such as credentials.
        headers: Vec<(String, String)>,
        /// Which of the two transports of the protocol is used.
        kind: McpHttpKind,
    },
    /// A server inside of the program that drives the session.
    Program,
    /// A server that cannot be used, for this reason. It is listed as failed.
    Unusable(String),
}

/// A transport of the protocol over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpHttpKind {
    /// The streamable transport.
    Streamable,
    /// The older transport, with one stream of server-sent events.
    ServerSentEvents,
}

/// A configuration that is not JSON, or has no servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpConfigError(String);

impl fmt::Display for McpConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for McpConfigError {}

#[derive(Deserialize)]
struct ServerEntry {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(rename = "headersHelper")]
    headers_helper: Option<Value>,
}

#[derive(Deserialize)]
struct ConfigFile {
    /// In the order of the file.
    #[serde(default, rename = "mcpServers")]
    servers: Option<IndexMap<String, Value>>,
}

/// Parses `{"mcpServers": {…}}`. `variable` returns the value of a variable for `${NAME}`.
///
/// # Errors
/// Returns an error if the text is not JSON of this form. A single server that is not valid does not make the
/// others unusable: see [`McpTransport::Unusable`].
pub fn parse_servers(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<McpServerConfig>, McpConfigError> {
    let file: ConfigFile = serde_json::from_str(text).map_err(|error| McpConfigError(error.to_string()))?;
    let servers = file.servers.ok_or_else(|| McpConfigError("`mcpServers` is missing".to_owned()))?;
    let servers = servers.into_iter().map(|(name, entry)| McpServerConfig {
        name,
        transport: transport(entry, variable).unwrap_or_else(McpTransport::Unusable),
    });
    Ok(servers.collect())
}

fn transport(entry: Value, variable: &dyn Fn(&str) -> Option<String>) -> Result<McpTransport, String> {
    let entry: ServerEntry =
        serde_json::from_value(entry).map_err(|error| format!("its configuration is not valid: {error}"))?;
    let expand = |text: &str| expand(text, variable);
    let expand_all = |values: BTreeMap<String, String>| {
        let values = values.into_iter().map(|(name, value)| Ok((name, expand(&value)?)));
        values.collect::<Result<Vec<(String, String)>, String>>()
    };
    let kind = entry.kind.as_deref().unwrap_or(if entry.command.is_some() { "stdio" } else { "http" });
    match kind {
        "stdio" => {
            let command = entry.command.ok_or("its configuration has no `command`")?;
            Ok(McpTransport::Stdio {
                command: expand(&command)?,
                args: entry.args.iter().map(|arg| expand(arg)).collect::<Result<_, _>>()?,
                env: expand_all(entry.env)?.into_iter().collect(),
            })
        }
        "http" | "streamable-http" | "sse" => {
            if entry.headers_helper.is_some() {
                return Err("`headersHelper` is not supported; use `headers`".to_owned());
            }
            let url = entry.url.ok_or("its configuration has no `command` and no `url`")?;
            let is_legacy = kind == "sse";
            Ok(McpTransport::Http {
                url: expand(&url)?,
                headers: expand_all(entry.headers)?,
                kind: if is_legacy { McpHttpKind::ServerSentEvents } else { McpHttpKind::Streamable },
            })
        }
        "sdk" => Ok(McpTransport::Program),
        kind => Err(format!("servers of the type `{kind}` are not supported; use stdio, http or sse")),
    }
}

/// Replaces `${NAME}` and `${NAME:-default}` by the values of variables.
///
/// # Errors
/// Returns a message if a variable without a default is not set.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start + 2..].find('}') else { break };
        expanded.push_str(&rest[..start]);
        let reference = &rest[start + 2..start + 2 + length];
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (reference, None),
        };
        let value = variable(name).or(default);
        expanded.push_str(&value.ok_or_else(|| format!("the variable `{name}` is not set"))?);
        rest = &rest[start + 2 + length + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        (name == "DIR").then(|| "/srv".to_owned())
    }

    fn parse(text: &str) -> Vec<McpServerConfig> {
        parse_servers(text, &variable).unwrap()
    }

    fn reason(text: &str) -> String {
        match parse(text).remove(0).transport {
            McpTransport::Unusable(reason) => reason,
            usable => panic!("{usable:?}"),
        }
    }

    #[test]
    fn servers_are_parsed_in_the_order_of_the_file() {
        let servers = parse(
            r#"{"mcpServers":{"z":{"command":"${DIR}/server","args":["${PORT:-80}","$DIR"],"env":{"A":"${DIR}"}},
            "a":{"type":"stdio","command":"x"}}}"#,
        );
        let stdio = McpTransport::Stdio {
            command: "/srv/server".to_owned(),
            args: vec!["80".to_owned(), "$DIR".to_owned()],
            env: BTreeMap::from([("A".to_owned(), "/srv".to_owned())]),
        };
        assert_eq!(servers[0], McpServerConfig { name: "z".to_owned(), transport: stdio });
        assert_eq!(servers[1].name, "a");
    }

    #[test]
    fn servers_over_http_have_an_address_and_headers() {
        let servers = parse(
            r#"{"mcpServers":{"h":{"type":"http","url":"https://x${DIR}","headers":{"Authorization":"Bearer ${DIR}"}},
            "s":{"type":"sse","url":"http://x"},"u":{"url":"http://x"},"p":{"type":"sdk","name":"p"}}}"#,
        );
        let http = |url: &str, headers: &[(&str, &str)], kind| McpTransport::Http {
            url: url.to_owned(),
            headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            kind,
        };
        let transports: Vec<_> = servers.into_iter().map(|server| server.transport).collect();
        let authorization = [("Authorization", "Bearer /srv")];
        assert_eq!(transports[0], http("https://x/srv", &authorization, McpHttpKind::Streamable));
        assert_eq!(transports[1], http("http://x", &[], McpHttpKind::ServerSentEvents));
        assert_eq!(transports[2], http("http://x", &[], McpHttpKind::Streamable));
        assert_eq!(transports[3], McpTransport::Program);
    }

    #[test]
    fn a_server_that_cannot_be_used_names_the_reason() {
        let ws = reason(r#"{"mcpServers":{"h":{"type":"ws","url":"ws://x"}}}"#);
        assert_eq!(ws, "servers of the type `ws` are not supported; use stdio, http or sse");
        let header = r#"{"mcpServers":{"h":{"type":"http","url":"http://x","headers":{"A":"${NOPE}"}}}}"#;
        assert_eq!(reason(header), "the variable `NOPE` is not set");
        let helper = r#"{"mcpServers":{"h":{"type":"http","url":"http://x","headersHelper":"/bin/x"}}}"#;
        assert!(reason(helper).contains("`headersHelper`"));
        assert_eq!(reason(r#"{"mcpServers":{"s":{"command":"${NOPE}"}}}"#), "the variable `NOPE` is not set");
        assert_eq!(reason(r#"{"mcpServers":{"s":{}}}"#), "its configuration has no `command` and no `url`");
        assert!(reason(r#"{"mcpServers":{"s":{"type":"stdio"}}}"#).ends_with("has no `command`"));
        assert!(reason(r#"{"mcpServers":{"s":{"command":1}}}"#).contains("not valid"));
    }

    #[test]
    fn other_json_is_an_error() {
        assert!(parse_servers("{}", &variable).is_err());
        assert!(parse_servers("[]", &variable).is_err());
        assert!(parse_servers(r#"{"mcpServers":[]}"#, &variable).is_err());
    }

    #[test]
    fn an_open_reference_is_plain_text() {
        assert_eq!(expand("a${DIR", &variable).unwrap(), "a${DIR");
        assert_eq!(expand("${X:-}b", &variable).unwrap(), "b");
    }
}
