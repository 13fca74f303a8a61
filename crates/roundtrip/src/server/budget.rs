//! [`Owner`]: the caller that a budget of the server counts against (Z3).

use std::net::{IpAddr, Ipv6Addr};

use roundtrip_core::seal::Digest;

use super::peer::{Peer, Principal};

/// A budget shared by the callers of a server.
pub(crate) type Budget<O = Owner> = crate::budget::Budget<O>;
/// An amount of a [`Budget`] held by a caller; given back when dropped.
pub(crate) type Reservation<O = Owner> = crate::budget::Reservation<O>;

/// The caller that a reservation counts against.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Principal(Principal),
    /// The network of a caller without a principal.
    Network(IpAddr),
    /// All callers with neither a principal nor an address: they share as one.
    Unknown,
}

impl Owner {
    pub(crate) fn new(principal: Option<&Principal>, address: Option<IpAddr>) -> Self {
        match (principal, address) {
            (Some(principal), _) => Self::Principal(principal.clone()),
            (None, Some(address)) => Self::Network(network(address)),
            (None, None) => Self::Unknown,
        }
    }

    pub(crate) fn of(peer: &Peer) -> Self {
        Self::new(peer.principal.as_ref(), peer.address)
    }

    /// Returns the digest of the owner, which is the same on every instance.
    pub(crate) fn digest(&self) -> Digest {
        match self {
            Self::Principal(principal) => Digest::of("owner", &[b"principal", principal.as_str().as_bytes()]),
            Self::Network(IpAddr::V4(address)) => Digest::of("owner", &[b"ipv4", &address.octets()]),
            Self::Network(IpAddr::V6(address)) => Digest::of("owner", &[b"ipv6", &address.octets()]),
            Self::Unknown => Digest::of("owner", &[b"unknown"]),
        }
    }
}

/// Returns the network that an address stands for: of IPv6, one customer commonly has a whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z3: a caller without a principal is known by its address, of IPv6 by the first half of it.
    #[test]
    fn callers_without_a_principal_share_by_network() {
        let owner = |address: &str| Owner::new(None, Some(address.parse().expect("an address")));
        assert_eq!(owner("2001:db8:1:2:3:4:5:6"), owner("2001:db8:1:2::1"));
        assert_ne!(owner("2001:db8:1:2::1"), owner("2001:db8:1:3::1"));
        assert_eq!(owner("::ffff:192.0.2.1"), owner("192.0.2.1"));
        assert_ne!(owner("192.0.2.1"), owner("192.0.2.2"));
        let address = "192.0.2.1".parse().ok();
        let ada = Owner::Principal(Principal::new("ada"));
        assert_eq!(Owner::new(Some(&Principal::new("ada")), address), ada);
        assert_ne!(ada.digest(), owner("192.0.2.1").digest());
        assert_ne!(Owner::Unknown.digest(), owner("192.0.2.1").digest());
    }
}
