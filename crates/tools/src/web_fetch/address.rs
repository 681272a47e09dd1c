//! Public and private network addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// A resolver that returns public addresses only. The check is here, at the addresses that are connected to,
/// so that a name cannot resolve differently afterwards.
#[derive(Debug)]
pub(super) struct PublicAddresses {
    pub(super) allows_private: bool,
    /// The host of the proxy, which may be private.
    pub(super) proxy_host: Option<String>,
}

/// The error for a name that resolves to private addresses only.
#[derive(Debug)]
pub(super) struct PrivateAddress;

impl fmt::Display for PrivateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host has an address of a private network")
    }
}

impl std::error::Error for PrivateAddress {}

impl Resolver for PublicAddresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let all = DefaultResolver::default().resolve(uri, config, timeout)?;
        let is_proxy = self.proxy_host.as_deref().is_some_and(|host| uri.host() == Some(host));
        if self.allows_private || is_proxy {
            return Ok(all);
        }
        let mut public = self.empty();
        all.iter().filter(|address| !is_private(address.ip())).for_each(|address| public.push(*address));
        if public.is_empty() { Err(ureq::Error::Other(Box::new(PrivateAddress))) } else { Ok(public) }
    }
}

/// Returns whether an address is not one of the public internet.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        // This network, shared address space, protocol assignments, benchmarks, reserved.
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = match segments {
        // Mapped, compatible, translated, NAT64, 6to4 and ISATAP addresses contain one of version 4.
        [0, 0, 0, 0, 0, 0 | 0xFFFF, high, low] => Some((high, low)),
        [0, 0, 0, 0, 0xFFFF, 0, high, low] => Some((high, low)),
        [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => Some((high, low)),
        [0x2002, high, low, ..] => Some((high, low)),
        [_, _, _, _, 0 | 0x200, 0x5EFE, high, low] => Some((high, low)),
        _ => None,
    };
    let embedded = embedded.map(|(high, low)| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || segments[..2] == [0x2001, 0xDB8]
        // Teredo tunnels, NAT64 of a local network, addresses that are discarded, and the old site addresses.
        || segments[..2] == [0x2001, 0]
        || segments[..3] == [0x64, 0xFF9B, 1]
        || segments[..4] == [0x100, 0, 0, 0]
        || segments[0] & 0xFFC0 == 0xFEC0
        || embedded.is_some_and(is_private_v4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_recognised() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:c0a8:101::",
            "ff02::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:4136:e378::1",
            "2001:db8::1",
            "fe80::5efe:10.0.0.1",
            "2600::200:5efe:192.168.0.1",
            "fec0::1",
            "100::1",
            "fd00:ec2::254",
            "192.0.2.1",
            "192.0.0.8",
            "203.0.113.7",
            "240.0.0.1",
        ] {
            assert!(is_private(text.parse().unwrap()), "{text}");
        }
        for text in [
            "1.1.1.1",
            "93.184.216.34",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "172.32.0.1",
            "172.15.0.1",
            "100.128.0.1",
            "192.167.1.1",
            "198.20.0.1",
            "11.0.0.1",
            "64:ff9b::1.1.1.1",
            "2002:101:101::",
            "2001:4860:4860::8888",
            "2a00:1450:4001::1",
        ] {
            assert!(!is_private(text.parse().unwrap()), "{text}");
        }
    }
}
