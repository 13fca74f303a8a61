//! URLs and addresses: what is refused before a connection is made.

use roundtrip_core::auth::*;

#[track_caller]
fn refused(text: &str) -> UrlError {
    HttpUrl::parse(text).expect_err(text)
}

fn policy(server: &str) -> UrlPolicy {
    UrlPolicy::new(HttpUrl::parse(server).unwrap(), false).unwrap()
}

/// O49, O53: what two parsers could read differently, or what is no web page, is not used.
#[test]
fn hostile_urls_are_refused() {
    for text in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "tools.example",
        "",
        "://x",
        "ftp://a/",
    ] {
        assert_eq!(refused(text), UrlError::Scheme, "{text}");
    }
    for text in
        ["https://alice@tools.example/", "https://a:b@tools.example", "https://tools.example@evil.example/"]
    {
        assert_eq!(refused(text), UrlError::UserInfo, "{text}");
    }
    for text in [
        "https://a\\@evil.example/",
        "https://a/\r\nHost: b",
        "https://a/ b",
        "https://ä.example/",
        "https://a/\"",
        "\thttps://a/",
    ] {
        assert_eq!(refused(text), UrlError::Character, "{text:?}");
    }
    for text in [
        "https://",
        "https:///x",
        "https://?x",
        "https://a..b/",
        "https://.a/",
        "https://a%2eb/",
        "https://[::1",
        "https://[::1%25eth0]/",
        "https://::1/x",
    ] {
        assert!(matches!(refused(text), UrlError::Host | UrlError::Port), "{text}");
    }
    for text in [
        "https://2130706433/",
        "https://0x7f000001/",
        "https://127.1/",
        "https://0177.0.0.1/",
        "https://127.0.0.1./",
        "https://1.2.3.4.5/",
    ] {
        assert_eq!(refused(text), UrlError::Host, "{text}");
    }
    for text in ["https://a:65536/", "https://a:/", "https://a:+80/", "https://a:8o/"] {
        assert_eq!(refused(text), UrlError::Port, "{text}");
    }
    for text in ["https://a/x/../y", "https://a/.", "https://a/%2E%2e/y", "https://a/.%2e"] {
        assert_eq!(refused(text), UrlError::DotSegment, "{text}");
    }
    assert_eq!(refused("https://a/#x"), UrlError::Fragment);
    assert_eq!(refused(&format!("https://a/{}", "x".repeat(3000))), UrlError::TooLong);
}

/// O62: the URL of a server loses its fragment, and gains no slash.
#[test]
fn a_servers_url_stays_as_it_is() {
    assert_eq!(HttpUrl::of_server("HTTPS://Tools.Example#top").unwrap().as_str(), "HTTPS://Tools.Example");
    assert_eq!(
        HttpUrl::of_server("https://tools.example/mcp?a=b").unwrap().as_str(),
        "https://tools.example/mcp?a=b"
    );
}

/// O42: origins are compared without case and default ports.
#[test]
fn origins_are_compared_as_browsers_do() {
    let origin = |text: &str| HttpUrl::parse(text).unwrap().origin();
    assert_eq!(origin("HTTPS://A.example:443/x"), origin("https://a.EXAMPLE"));
    assert_eq!(origin("http://[::1]:80/"), "http://[::1]");
    assert_ne!(origin("https://a.example"), origin("http://a.example"));
    assert_ne!(origin("https://a.example"), origin("https://a.example:8443"));
}

/// O40, O51: references are resolved against the URL that was called.
#[test]
fn references_are_resolved() {
    let base = HttpUrl::parse("https://tools.example/a/mcp?x=1").unwrap();
    for (reference, expected) in [
        ("/meta", "https://tools.example/meta"),
        ("meta.json", "https://tools.example/a/meta.json"),
        ("//other.example/x", "https://other.example/x"),
        ("http://other.example/x", "http://other.example/x"),
        ("x?u=http://y", "https://tools.example/a/x?u=http://y"),
    ] {
        assert_eq!(base.resolve(reference).unwrap().as_str(), expected);
    }
    assert_eq!(
        HttpUrl::parse("https://tools.example").unwrap().resolve("x").unwrap().as_str(),
        "https://tools.example/x"
    );
    for reference in ["javascript:alert(1)", "//a@b/", "../x", "a b"] {
        assert!(base.resolve(reference).is_err(), "{reference}");
    }
}

/// O49: plain http is for this machine, and only where the server is on it too.
#[test]
fn plain_http_is_for_this_machine() {
    let (public, local) = (policy("https://tools.example/mcp"), policy("http://localhost:3000/mcp"));
    for url in ["http://login.example/", "http://localhost/", "http://127.0.0.1/", "http://tools.example/x"] {
        assert_eq!(public.read(url), Err(UrlError::Insecure), "{url}");
    }
    for url in [
        "http://localhost:4000/",
        "http://127.0.0.1/",
        "http://[::1]:9/",
        "https://login.example/",
        "http://127.9.9.9/",
    ] {
        assert!(local.read(url).is_ok(), "{url}");
    }
    for url in
        ["http://login.example/", "http://localhost.evil.example/", "http://10.0.0.1/", "http://0.0.0.0/"]
    {
        assert_eq!(local.read(url), Err(UrlError::Insecure), "{url}");
    }
    assert!(UrlPolicy::new(HttpUrl::parse("http://tools.example/mcp").unwrap(), true).is_err());
}

/// O50: addresses of private networks are refused for what came from the network, unless the client allows them.
#[test]
fn private_addresses_are_refused() {
    let public = policy("https://tools.example/mcp");
    let private = [
        "https://10.0.0.1/",
        "https://172.16.0.1/",
        "https://192.168.1.1/",
        "https://169.254.169.254/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://0.0.0.0/",
        "https://100.64.0.1/",
        "https://[::]/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::a00:1]/",
        "https://[2002:a00:1::]/",
        "https://255.255.255.255/",
    ];
    for url in private {
        assert_eq!(public.read(url), Err(UrlError::Private), "{url}");
        let allowed = UrlPolicy::new(HttpUrl::parse("https://tools.example/").unwrap(), true).unwrap();
        assert!(allowed.read(url).is_ok(), "{url}");
    }
    for url in ["https://8.8.8.8/", "https://[2606:4700::1111]/", "https://login.example/"] {
        assert!(public.read(url).is_ok(), "{url}");
    }
    let inside = policy("https://10.0.0.5/mcp");
    assert!(inside.read("https://10.0.0.5:8443/token").is_ok(), "the author named this host");
    assert_eq!(inside.read("https://10.0.0.6/token"), Err(UrlError::Private));
}

/// O50: the filter for resolved addresses knows the special ranges of both families.
#[test]
fn resolved_addresses_are_filtered() {
    let public = |text: &str| is_public_address(text.parse().unwrap());
    for text in
        ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::101:101", "2002:808:808::1"]
    {
        assert!(public(text), "{text}");
    }
    for text in [
        "0.1.2.3",
        "127.255.0.1",
        "169.254.0.1",
        "192.0.0.8",
        "198.19.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "203.0.113.9",
        "::1",
        "::",
        "::10.0.0.1",
        "::ffff:127.0.0.1",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "2001::1",
        "2001:db8::1",
        "64:ff9b:1::1",
        "100::1",
    ] {
        assert!(!public(text), "{text}");
    }
}

/// O50: an address that a name resolved to is public, or that of the server itself, or on this machine with the server.
#[test]
fn resolved_addresses_are_allowed_by_the_policy() {
    let allows = |server: &str, host: &str, address: &str| {
        policy(server).allows_address(host, address.parse().unwrap())
    };
    let public = "https://tools.example/mcp";
    assert!(allows(public, "login.example", "93.184.216.34"));
    for address in ["10.0.0.1", "127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fd00::1"] {
        assert!(!allows(public, "login.example", address), "{address}");
        assert!(allows(public, "TOOLS.example", address), "{address}");
    }
    for server in ["http://localhost:8000/mcp", "http://127.0.0.1/mcp"] {
        assert!(allows(server, "login.localhost", "127.0.0.1") && allows(server, "x", "::ffff:127.0.0.1"));
        assert!(!allows(server, "login.example", "10.0.0.1"));
    }
    let server = HttpUrl::parse(public).unwrap();
    assert!(UrlPolicy::new(server, true).unwrap().allows_address("a", "10.0.0.1".parse().unwrap()));
}
