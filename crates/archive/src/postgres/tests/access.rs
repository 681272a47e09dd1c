//! Tests of connections, users, passwords and errors.

use std::net::TcpListener;

use jiff::tz::TimeZone;
use threadline_app::CallQuery;
use threadline_app::SessionSource as _;
use threadline_app::SourceSelection;
use threadline_testkit::PostgresServer;
use threadline_usage::{CallGroups, GroupBy, PriceBook};

use crate::postgres::tests::Setup;
use crate::tests::source_home::{OTHER, files_below, text};
use crate::{Archive, ArchiveError, OriginFilter, StorageOptions};

#[test]
fn users_see_only_what_they_have_pushed() {
    let Some(setup) = Setup::new() else { return };
    setup.push();
    setup.sql(
        "drop role if exists bob; create role bob login;
        grant usage on schema threadline to bob; grant all on all tables in schema threadline to bob;
        grant usage on all sequences in schema threadline to bob",
    );
    let url = setup.server.url(&setup.database).replace("threadline@", "bob@");
    let bob = setup.open(&url).unwrap();
    assert_eq!(bob.sessions(&OriginFilter::default()).unwrap(), []);
    setup.write(OTHER, text("secret", 3));
    assert_eq!(setup.push_to(&bob, "laptop").unwrap().new_files, 6);
    setup.write(OTHER, text("secret", 5));
    assert_eq!(setup.push_to(&bob, "laptop").unwrap().grown_files, 1);
    assert_eq!(bob.verify(&|| ()).unwrap().files, 6);
    assert_eq!(bob.verify(&|| ()).unwrap().damaged, [""; 0]);
    let cache = setup.dir.path().join("bob");
    let homes = bob.fetch(&SourceSelection::default(), &cache, &|_| ()).unwrap();
    assert_eq!(homes.len(), 1);
    assert_eq!(files_below(&homes[0]), files_below(&setup.home()));
    // The owner of the tables sees both, and counts repeated calls once.
    assert_eq!(setup.archive().sessions(&OriginFilter::default()).unwrap().len(), 4);
    let calls = |archive: &Archive| {
        let calls = archive.model_calls(&SourceSelection::default(), &CallQuery::default()).unwrap().unwrap();
        CallGroups::of(&calls, GroupBy::Model, &PriceBook::embedded(), &TimeZone::UTC, |_, _| true)
            .total
            .calls
    };
    assert_eq!((calls(&bob), calls(&setup.archive())), (40 + 10 + 5, 40 + 10 + 20 + 5));
    drop(bob);
    setup.sql("drop owned by bob; drop role bob");
}

#[test]
fn encrypted_connections_check_the_certificate() {
    let Some(server) = PostgresServer::start_encrypted() else { return };
    let database = server.database();
    let open = |parameters: &str| {
        let url = format!("postgres://threadline@127.0.0.1:{}/{database}?{parameters}", server.port());
        Archive::create(&url.parse().unwrap(), &StorageOptions::new()).err().map(|error| error.to_string())
    };
    let unknown = open("sslmode=require").unwrap();
    assert!(unknown.contains("certificate"), "{unknown}");
    let own = format!("sslmode=verify-full&sslrootcert={}", server.certificate().display());
    assert_eq!(open(&own), None);
}

#[test]
fn errors_say_what_is_wrong() {
    let Some(setup) = Setup::new() else { return };
    let open = |url: &str| Archive::open(&url.parse().unwrap(), &StorageOptions::new()).err().unwrap();
    assert!(matches!(open(&setup.server.url(&setup.database)), ArchiveError::NoDatabase));
    let missing = open(&setup.server.url("nothing")).to_string();
    assert!(missing.contains("\"nothing\" does not exist"), "{missing}");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let gone = open(&format!("postgres://ada:pw@127.0.0.1:{port}/x")).to_string();
    assert!(gone.contains("connect to the database") && !gone.contains("pw"), "{gone}");
    setup.archive();
    setup.sql("update threadline.version set version = 99");
    assert!(matches!(open(&setup.server.url(&setup.database)), ArchiveError::NewerDatabase));
}

#[test]
fn passwords_are_taken_from_the_environment() {
    let Some(setup) = Setup::new() else { return };
    setup.sql("drop role if exists keyholder; create role keyholder login superuser password 'open sesame'");
    let url = setup.server.url(&setup.database).replace("threadline@", "keyholder@");
    let with = |password: Option<&str>| {
        let options: StorageOptions =
            password.map(|text| ("PGPASSWORD".to_owned(), text.to_owned())).into_iter().collect();
        Archive::create(&url.parse().unwrap(), &options).err().map(|error| error.to_string())
    };
    assert!(with(None).unwrap().contains("password missing"));
    assert!(with(Some("wrong")).unwrap().contains("password authentication failed"));
    assert_eq!(with(Some("open sesame")), None);
    assert_eq!(
        setup
            .open(&url.replace("keyholder@", "keyholder:open%20sesame@"))
            .err()
            .map(|error| error.to_string()),
        None
    );
}
