//! `compare`: two sessions side by side.

use insta::assert_snapshot;
use threadline_testkit::{TestHome, session_uuid};

use crate::run::at_home;

#[test]
fn sessions_are_shown_side_by_side() {
    let home = TestHome::new();
    let session = |name: &str, text: &str| {
        let notation = format!(
            "u1 user \"write {name}\"\na1 <- u1 reply m1 tool t1 Write {{\"file_path\":\"/home/ada/loom/a.rs\"}}\n\
             r1 <- a1 result t1 \"ok\" {{\"type\":\"create\",\"filePath\":\"/home/ada/loom/a.rs\",\"content\":\"{text}\\n\",\"originalFile\":null}}\n\
             a2 <- r1 reply m2 text \"ok\"\n"
        );
        home.session(name, &notation);
        session_uuid(name)
    };
    let (a, b) = (session("first", "one"), session("second", "two"));
    assert_snapshot!(at_home(&home, &["compare", &a, &b]), @r"
    exit: 0
    ----- stdout -----
    A  89d7ed7f  write first
    B  a49985ef  write second

                                          A                 B  B − A
    started                2026-01-01 10:00  2026-01-01 10:00
    models                         opus-4-8          opus-4-8
    turns                                 1                 1
    model calls                           2                 2
    tool calls                            1                 1
    errors                                0                 0
    sub-agents                            0                 0
    compactions                           0                 0
    input tokens                          0                 0
    output tokens                         0                 0
    cache read                            0                 0
    cache write                           0                 0
    cost                              $0.00             $0.00
    elapsed                           3.0 s             3.0 s
    model                             2.0 s             2.0 s
    tools                             1.0 s             1.0 s
    waiting for an answer              0 ms              0 ms
    idle                               0 ms              0 ms

    tool   A  B  B − A
    Write  1  1

    file   A   B  result
    a.rs  +1  +1  different

       turn   cost   time  prompt
    A     1  $0.00  3.0 s  write first
    B     1  $0.00  3.0 s  write second
    ----- stderr -----
    --diff shows the differences between the files
    ");
    assert_snapshot!(at_home(&home, &["compare", &a, &b, "--diff"]), @r"
    exit: 0
    ----- stdout -----
    --- a/a.rs
    +++ b/a.rs
    @@ -1 +1 @@
    -one
    +two
    ----- stderr -----
    ");
    let object = at_home(&home, &["compare", &a, &b, "--json"]).json();
    assert_eq!((&object["a"]["session"], &object["b"]["turns"]), (&(*a).into(), &1.into()));
    assert_eq!(object["files"][0]["relation"], "different");
    let wrong = at_home(&home, &["compare", &a, &format!("{b}#m70")]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("m70 is in no conversation"), "{}", wrong.err);
}
