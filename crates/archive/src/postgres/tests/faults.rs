//! Tests of interruptions, slow servers, wrong clocks and damage.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use threadline_app::SourceSelection;

use crate::postgres::tests::{Setup, assert_same_usage};
use crate::tests::source_home::{LOG, OTHER, files_below, text};
use crate::{Archive, StorageOptions};

/// Forwards connections to a server until some bytes have passed, and then drops them.
fn cutting_proxy(port: u16, limit: i64) -> u16 {
    forward(port, 512, limit)
}

/// Forwards connections to a server in pieces of some bytes, until a number of bytes have passed.
fn forward(port: u16, piece: usize, limit: i64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own_port = listener.local_addr().unwrap().port();
    let left = Arc::new(AtomicI64::new(limit));
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            if left.load(SeqCst) <= 0 {
                break;
            }
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { break };
            server.set_nodelay(true).and_then(|()| client.set_nodelay(true)).unwrap();
            for (mut from, mut to) in
                [(client.try_clone(), server.try_clone()), (server.try_clone(), client.try_clone())]
                    .map(|(from, to)| (from.unwrap(), to.unwrap()))
            {
                let left = left.clone();
                std::thread::spawn(move || {
                    let mut buffer = vec![0; piece];
                    while let Ok(n_read @ 1..) = from.read(&mut buffer) {
                        if left.fetch_sub(n_read as i64, SeqCst) < n_read as i64
                            || to.write_all(&buffer[..n_read]).is_err()
                        {
                            break;
                        }
                    }
                    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                });
            }
        }
    });
    own_port
}

#[test]
fn interrupted_pushes_end_like_an_uninterrupted_one() {
    let Some(setup) = Setup::new() else { return };
    setup.push();
    let mut n_cut = 0;
    for number in 0..100_i64 {
        setup.write(LOG, text(LOG, 40));
        setup.write(OTHER, text(OTHER, 20));
        let machine = format!("machine{number}");
        if number % 3 == 0 {
            setup.push_to(&setup.archive(), &machine).unwrap();
            setup.write(LOG, text(LOG, 90));
            setup.write(OTHER, text("changed", 9));
        }
        // The points of interruption are spread over the whole push.
        let limit = 1500 + number * 7919 % 160_000;
        let interrupted = setup.open(&setup.url_at(cutting_proxy(setup.server.port(), limit)));
        n_cut += usize::from(interrupted.and_then(|archive| setup.push_to(&archive, &machine)).is_err());
        let report = setup.push_to(&setup.archive(), &machine).unwrap();
        assert!(report.unread.is_empty());
        assert_eq!(setup.push_to(&setup.archive(), &machine).unwrap().copied_bytes, 0);
        let selection = SourceSelection { machine: Some(machine), ..SourceSelection::default() };
        let homes = setup.fetch_with(&selection);
        assert_eq!(files_below(&homes[0]), files_below(&setup.home()), "limit {limit}");
    }
    assert!(n_cut > 30, "{n_cut}");
    assert_eq!(setup.damage(), [""; 0]);
    // The last state of the home is one of a hundred; the calls of all of them count once.
    let rows = "select count(distinct key), count(*) filter (where not is_shared) from threadline.usage";
    let (keys, single) = setup.sql(rows).split_once('|').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(keys.parse::<u32>().unwrap() > 100 && single == "0", "{keys} {single}");
}

#[test]
fn pushers_at_the_same_time_lose_and_double_nothing() {
    let Some(setup) = Setup::new() else { return };
    setup.archive();
    std::thread::scope(|scope| {
        for machine in ["laptop", "laptop", "laptop", "desktop", "desktop", "phone"] {
            let setup = &setup;
            scope.spawn(move || setup.push_to(&setup.archive(), machine).unwrap());
        }
    });
    let homes = setup.fetch();
    assert_eq!(homes.len(), 3);
    for home in homes {
        assert_eq!(files_below(&home), files_below(&setup.home()));
    }
    assert_eq!(setup.push().copied_bytes, 0);
    assert_eq!(setup.damage(), [""; 0]);
    assert_same_usage(&setup);
}

#[test]
fn a_changed_byte_in_any_table_is_found() {
    let Some(setup) = Setup::new() else { return };
    setup.write(LOG, [text(LOG, 5).into_bytes(), b"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\"}]}}\n{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{}}]}}\n".to_vec()].concat());
    setup.push();
    assert_eq!(setup.damage(), [""; 0]);
    for (table, change) in [
        ("lines", "content = set_byte(content, 7, get_byte(content, 7) # 1)"),
        ("lines", "line = line + 1"),
        ("chunks", "content = set_byte(content, 7, get_byte(content, 7) # 4)"),
        ("messages", "text = 'x' || text"),
        ("messages", "uuid = null"),
        ("tool_calls", "name = 'Bosh'"),
        ("tool_results", "is_error = not is_error"),
        ("usage", "output_tokens = output_tokens + 1"),
        ("usage", "file = 999999"),
        ("files", "modified = modified + 1"),
        ("files", "stamp = stamp || '1'"),
        ("files", "digest = replace(digest, '1', '2')"),
        ("files", "cwd = '/q'"),
        ("files", "is_current = false"),
    ] {
        let row = format!("(select ctid from threadline.{table} order by ctid limit 1)");
        setup.sql(&format!("create table threadline.copy as select * from threadline.{table}"));
        setup.sql(&format!("update threadline.{table} set {change} where ctid = {row}"));
        assert!(!setup.damage().is_empty(), "{table}: {change}");
        let columns = setup.sql(&format!("select string_agg(column_name, ',') from information_schema.columns where table_schema = 'threadline' and table_name = '{table}'"));
        setup.sql(&format!("delete from threadline.{table}; insert into threadline.{table} ({columns}) select {columns} from threadline.copy; drop table threadline.copy"));
        assert_eq!(setup.damage(), [""; 0], "{table}: {change}");
    }
}

#[test]
fn a_wrong_clock_loses_nothing() {
    let Some(setup) = Setup::new() else { return };
    setup.check_wrong_clocks(&setup.archive());
}

/// Passes everything on, one byte at a time.
fn slow_proxy(port: u16) -> u16 {
    forward(port, 1, i64::MAX)
}

#[test]
fn a_slow_connection_loses_nothing() {
    let Some(setup) = Setup::new() else { return };
    setup.push();
    setup.write(LOG, text(LOG, 60));
    let slow = setup.open(&setup.url_at(slow_proxy(setup.server.port()))).unwrap();
    assert_eq!(setup.push_to(&slow, "laptop").unwrap().grown_files, 1);
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
    assert_eq!(setup.damage(), [""; 0]);
}

#[test]
fn a_push_continues_when_a_busy_server_does() {
    let Some(setup) = Setup::new() else { return };
    setup.archive();
    let mut other = postgres::Client::connect(&setup.server.url(&setup.database), postgres::NoTls).unwrap();
    let mut lock = other.transaction().unwrap();
    lock.batch_execute("lock table threadline.files in access exclusive mode").unwrap();
    std::thread::scope(|scope| {
        let push = scope.spawn(|| setup.push());
        let waiting = "select count(*) from pg_locks where not granted and database = \
                       (select oid from pg_database where datname = current_database())";
        while setup.sql(waiting) == "0" {
            assert!(!push.is_finished());
        }
        lock.commit().unwrap();
        assert_eq!(push.join().unwrap().new_files, 6);
    });
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
}

#[test]
fn a_server_that_never_answers_is_an_error() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for mode in ["disable", "prefer"] {
        let url = format!("postgres://ada:pw@127.0.0.1:{port}/x?sslmode={mode}&connect_timeout=1");
        let error = Archive::create(&url.parse().unwrap(), &StorageOptions::new()).err().unwrap();
        assert_eq!(error.to_string(), "cannot connect to the database: the server does not answer");
    }
}
