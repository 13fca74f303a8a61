//! Tests of holders that share a store in a directory.

use super::processes::Folder;
use super::*;
use crate::oauth::store::FileStore;

fn sign_in(number: usize) -> Record {
    let mut record = Record::default();
    record.sign_in(grant(number, life(3600)));
    record
}

/// O80, O86: the stores keep the contract that stores of authors are held to, and one without locks does not.
#[tokio::test(flavor = "multi_thread")]
async fn stores_keep_their_contract() {
    use crate::oauth::store::{StoreError, StoreLock};
    use crate::testing::stores;
    use roundtrip_core::seal::BoxFuture;

    let memory = MemoryStore::new();
    stores::tokens(memory.clone(), memory).await.unwrap();
    let folder = Folder::new();
    stores::tokens(folder.open(), folder.open()).await.unwrap();

    #[derive(Clone, Default)]
    struct WithoutLocks(MemoryStore);
    impl TokenStore for WithoutLocks {
        fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
            self.0.load(server)
        }

        fn save<'a>(&'a self, server: &'a str, record: &'a Record) -> BoxFuture<'a, Result<(), StoreError>> {
            self.0.save(server, record)
        }

        fn delete<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
            self.0.delete(server)
        }

        fn lock<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
            Box::pin(async { Ok(StoreLock::new(())) })
        }
    }
    let store = WithoutLocks::default();
    let error = stores::tokens(store.clone(), store).await.unwrap_err();
    assert!(error.to_string().contains("a second lock was given"), "{error}");
    stores::tokens(MemoryStore::new(), MemoryStore::new()).await.unwrap_err();
}

/// O80: the wait for a lock in memory has an end, as that for a file has.
#[tokio::test(start_paused = true)]
async fn a_lock_in_memory_is_not_waited_for_without_end() {
    use crate::oauth::store::StoreError;
    let store = MemoryStore::new();
    let held = store.lock(SERVER).await.unwrap();
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), store.lock(SERVER)).await;
    assert!(matches!(waited, Ok(Err(StoreError::Busy { .. }))), "{waited:?}");
    drop(held);
    store.lock(SERVER).await.unwrap();
}

/// O80: clients in one process that share a directory make one exchange.
#[tokio::test(flavor = "multi_thread")]
async fn clients_of_one_directory_make_one_exchange() {
    let folder = Folder::new();
    let issuer = Issuer::default();
    over(folder.open()).signed_in(grant(1, life(-1))).await.unwrap();
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let (tokens, issuer) = (over(folder.open()), issuer.clone());
            tokio::spawn(async move { tokens.token(&issuer).await })
        })
        .collect();
    for call in calls {
        assert_eq!(token_of(call.await.unwrap()), "a2");
    }
    assert_eq!(issuer.exchanges(), 1);
}

/// O86: a record is stored whole, apart from those of other servers and accounts, and is gone once deleted.
#[tokio::test]
async fn records_are_kept_apart() {
    let folder = Folder::new();
    let (alice, bob) = (folder.open(), folder.open().account("bob"));
    assert_eq!(alice.load(SERVER).await.unwrap(), None);
    let record = sign_in(1);
    alice.save(SERVER, &record).await.unwrap();
    bob.save(SERVER, &sign_in(2)).await.unwrap();
    alice.save("https://other.example/mcp", &sign_in(3)).await.unwrap();
    assert_eq!(alice.load(SERVER).await.unwrap(), Some(record));
    assert_eq!(stored(&bob).await.access_token.expose(), "a2");
    alice.delete(SERVER).await.unwrap();
    alice.delete(SERVER).await.unwrap();
    assert_eq!(alice.load(SERVER).await.unwrap(), None);
    assert!(bob.load(SERVER).await.unwrap().is_some());
}

/// O86: files and their directory are of their owner alone, and a file that others could read is taken from them.
#[cfg(unix)]
#[tokio::test]
async fn files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let folder = Folder::new();
    let store = folder.open();
    store.save(SERVER, &sign_in(1)).await.unwrap();
    let held = store.lock(SERVER).await.unwrap();
    assert_eq!(mode(&folder.0), 0o700);
    let files: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "the record and its lock, and nothing temporary");
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
        set(file, 0o644);
    }
    drop(held);
    assert!(store.load(SERVER).await.unwrap().is_some());
    let record = files.iter().find(|file| file.extension().unwrap() == "json").unwrap();
    assert_eq!(mode(record), 0o600);

    set(&folder.0, 0o777);
    let error = FileStore::open(&folder.0).unwrap_err();
    assert!(error.to_string().contains("other users can write"), "{error}");
    set(&folder.0, 0o755);
    FileStore::open(&folder.0).unwrap();
}

/// O86: a link in place of a record or its lock is not followed, and what it leads to is left as it is.
#[cfg(unix)]
#[tokio::test]
async fn a_link_in_place_of_a_record_is_not_followed() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = Folder::new();
    let store = folder.open();
    store.save(SERVER, &sign_in(1)).await.unwrap();
    drop(store.lock(SERVER).await.unwrap());
    let target = folder.0.join("elsewhere");
    for ending in ["json", "lock"] {
        let files = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path());
        let file =
            files.into_iter().find(|file| file.extension().is_some_and(|found| found == ending)).unwrap();
        std::fs::rename(&file, &target).unwrap();
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o644)).unwrap();
        symlink(&target, &file).unwrap();
        let error = match ending {
            "json" => store.load(SERVER).await.map(drop).unwrap_err(),
            _ => store.lock(SERVER).await.map(drop).unwrap_err(),
        };
        assert!(error.to_string().contains("it is a link"), "{error}");
        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o644);
        std::fs::remove_file(&file).unwrap();
    }
}

/// O86: a pipe in place of a record is refused at once: nobody may ever write to it.
#[cfg(unix)]
#[tokio::test]
async fn a_pipe_in_place_of_a_record_is_refused() {
    let folder = Folder::new();
    let store = folder.open();
    store.save(SERVER, &sign_in(1)).await.unwrap();
    let path = std::fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let loaded = tokio::time::timeout(std::time::Duration::from_secs(5), store.load(SERVER)).await;
    let error = loaded.expect("no wait for a writer").unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

/// O86: a directory, or a record, of another user is refused.
#[cfg(unix)]
#[tokio::test]
async fn what_belongs_to_another_user_is_refused() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let folder = Folder::new();
    let store = folder.open();
    store.save(SERVER, &sign_in(1)).await.unwrap();
    let path = std::fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    if std::fs::metadata(&path).unwrap().uid() != 0 {
        // Only root gives files away; to anybody else the system's directories are another user's.
        let error = FileStore::open("/usr").unwrap_err();
        assert!(error.to_string().contains("another user"), "{error}");
        return;
    }
    chown(&path, Some(12345), None).unwrap();
    let error = store.load(SERVER).await.unwrap_err();
    assert!(error.to_string().contains("another user"), "{error}");
    chown(&folder.0, Some(12345), None).unwrap();
    let error = FileStore::open(&folder.0).unwrap_err();
    assert!(error.to_string().contains("another user"), "{error}");
    let error = FileStore::open(folder.0.join("below").join("tokens")).unwrap_err();
    assert!(
        error.to_string().contains(&format!("`{}` belongs to another user", folder.0.display())),
        "{error}"
    );
}

/// O86: a directory that others could replace as a whole is refused, unless each may only move what is theirs.
#[cfg(unix)]
#[test]
fn a_directory_below_one_that_others_can_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.open();
    let below = folder.0.join("one").join("tokens");
    FileStore::open(&below).unwrap();
    for (mode, is_refused) in [(0o777, true), (0o1777, false), (0o755, false)] {
        std::fs::set_permissions(folder.0.join("one"), std::fs::Permissions::from_mode(mode)).unwrap();
        let opened = FileStore::open(&below);
        assert_eq!(opened.is_err(), is_refused, "{mode:o}: {opened:?}");
    }
}

/// O86: a record that cannot be read is an error that names the file and says what to do, and shows nothing of it.
#[tokio::test]
async fn a_damaged_record_is_named() {
    let folder = Folder::new();
    let store = folder.open();
    store.save(SERVER, &sign_in(1)).await.unwrap();
    let path = std::fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read_to_string(&path).unwrap();
    for damaged in [
        String::new(),
        whole[..whole.len() / 2].to_owned(),
        whole.replace("access_token", "token"),
        whole.replace("\"version\": 1", "\"version\": 2"),
        whole.replace("alice", "bob"),
        " ".repeat(2 << 20),
        "\0".repeat(whole.len()),
    ] {
        std::fs::write(&path, &damaged).unwrap();
        let error = over(store.clone()).token(&Issuer::default()).await.unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()) && error.contains("delete the file"), "{error}");
        assert!(!error.contains("a1"), "{error}");
    }
    std::fs::write(&path, whole).unwrap();
    assert_eq!(stored(&store).await.access_token.expose(), "a1");
}

/// O86: readers see a whole record, old or new, while it is replaced, and nothing temporary stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_replaced_whole() {
    let folder = Folder::new();
    let store = folder.open();
    store.save(SERVER, &sign_in(0)).await.unwrap();
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for number in 1..50 {
                store.save(SERVER, &sign_in(number)).await.unwrap();
            }
        }
    });
    while !writer.is_finished() {
        stored(&store).await;
    }
    writer.await.unwrap();
    assert_eq!(stored(&store).await.access_token.expose(), "a49");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

/// O86: a temporary file that a crash has left is deleted once it is old, and no younger one, nor a file of anybody else's.
#[tokio::test]
async fn what_a_crash_left_is_deleted() {
    let folder = Folder::new();
    folder.open().save(SERVER, &sign_in(1)).await.unwrap();
    let record = std::fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    let beside = |ending: &str| record.with_extension(ending);
    let (old, young) = (beside("0123456789abcdef.tmp"), beside("0123456789abcdee.tmp"));
    let others = ["notes.tmp", "x.0123456789abcdef.tmp"].map(|name| folder.0.join(name));
    let others = [&others[..], &[beside("tmp"), beside("1.tmp")]].concat();
    let foreign = others.iter().map(|path| (path, 7200));
    for (path, age) in foreign.chain([(&old, 7200), (&young, 60)]) {
        let file = std::fs::File::create(path).unwrap();
        file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
    }
    folder.open();
    assert!(!old.exists() && young.exists());
    assert!(others.iter().all(|path| path.exists()), "{others:?}");
}

/// O80: the wait for another process is bounded, and a token that is still good is used after it.
#[tokio::test]
async fn the_wait_for_a_lock_is_bounded() {
    let folder = Folder::new();
    let store = folder.open().longest_wait(std::time::Duration::ZERO);
    let issuer = Issuer::default();
    for (seconds, usable) in [(20, true), (-1, false)] {
        over(store.clone()).signed_in(grant(1, life(seconds))).await.unwrap();
        let held = folder.open().lock(SERVER).await.unwrap();
        let error = over(store.clone()).registered(grant(1, None).terms.client).await.unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
        let tokens = over(store.clone());
        assert_eq!(tokens.token(&issuer).await.ok().flatten().is_some(), usable, "{seconds}");
        assert_eq!(issuer.exchanges(), 0, "no refresh token is sent without the lock");
        drop(held);
    }
    assert_eq!(token_of(over(store).token(&issuer).await), "a2");
}
