//! Two hosts on this machine: network namespaces, joined by a cable, each with a container bridge of the same address.
//!
//! Needs root and `ip`; where they are not to be had, tests say so and end.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

/// Addresses of the first and the second host on the network that they share.
pub(crate) const SHARED: [&str; 2] = ["10.99.0.1", "10.99.0.2"];
pub(crate) const SHARED_V6: [&str; 2] = ["fd77::1", "fd77::2"];
/// What both have on a bridge of their own.
pub(crate) const BRIDGE: &str = "172.17.0.1";

/// The interface of each on that network.
pub(crate) const NAMES: [&str; 2] = ["eno1", "eth0"];

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Two hosts, until they are dropped.
pub(crate) struct Hosts {
    spaces: [String; 2],
}

impl Hosts {
    /// Nothing where hosts cannot be made.
    pub(crate) fn new() -> Option<Hosts> {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let hosts =
            Hosts { spaces: ["a", "b"].map(|end| format!("coll-{}-{number}-{end}", std::process::id())) };
        match hosts.set_up() {
            Ok(()) => Some(hosts),
            Err(why) => {
                eprintln!("skipped, as no network namespaces can be made here: {why}");
                None
            }
        }
    }

    fn set_up(&self) -> Result<(), String> {
        let [a, b] = &self.spaces;
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add {} netns {a} type veth peer name {} netns {b}", NAMES[0], NAMES[1]))?;
        for (host, space) in self.spaces.iter().enumerate() {
            let name = NAMES[host];
            ip(&format!("-n {space} link set lo up"))?;
            ip(&format!("-n {space} link add docker0 type veth peer name inside"))?;
            for (name, address) in
                [(name, format!("{}/24", SHARED[host])), ("docker0", format!("{BRIDGE}/16"))]
            {
                ip(&format!("-n {space} addr add {address} dev {name}"))?;
                ip(&format!("-n {space} link set {name} up"))?;
            }
            ip(&format!("-n {space} link set inside up"))?;
            ip(&format!("-n {space} addr add {}/64 dev {name} nodad", SHARED_V6[host]))?;
        }
        Ok(())
    }

    /// Runs `ip` on a host.
    pub(crate) fn ip(&self, host: usize, arguments: &str) {
        ip(&format!("-n {} {arguments}", self.spaces[host])).unwrap();
    }

    /// From now on, what this host sends to the other one is lost on the way; or no longer.
    pub(crate) fn lose_packets(&self, host: usize, lose: bool) {
        let (to, name) = (SHARED[1 - host], NAMES[host]);
        match lose {
            true => self
                .ip(host, &format!("neigh replace {to} lladdr 02:00:00:00:00:99 dev {name} nud permanent")),
            false => self.ip(host, &format!("neigh del {to} dev {name}")),
        }
    }

    /// Gives a host its own idea of what a name stands for.
    pub(crate) fn name(&self, host: usize, name: &str, address: &str) {
        let folder = format!("/etc/netns/{}", self.spaces[host]);
        fs::create_dir_all(&folder).unwrap();
        fs::write(format!("{folder}/hosts"), format!("127.0.0.1 localhost\n{address} {name}\n")).unwrap();
    }

    /// Runs this program's test `name` again on a host, with variables in its environment.
    pub(crate) fn run(&self, host: usize, name: &str, variables: &[(&str, &str)]) -> JoinHandle<Output> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.spaces[host]]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).envs(variables.iter().copied());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        thread::spawn(move || child.wait_with_output().unwrap())
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for space in &self.spaces {
            let _ = ip(&format!("netns del {space}"));
            let _ = fs::remove_dir_all(format!("/etc/netns/{space}"));
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output =
        Command::new("ip").args(arguments.split_whitespace()).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
