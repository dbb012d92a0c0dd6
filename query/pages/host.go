package pages

import (
	"net"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"
)

// hostKind is what the Host of a request is to this server.
type hostKind uint8

// Kinds of hosts. A name that is not ours may have been pointed to our address by whoever owns it, so that a page of theirs counts
// as one of ours to the browser (DNS rebinding); an address cannot.
const (
	foreign hostKind = iota
	// loopbackHost is this machine: 127.0.0.1, [::1] or localhost.
	loopbackHost
	// addressHost is an IP address.
	addressHost
	// namedHost is one of the configured names.
	namedHost
)

// host is whom a request was sent to, as its sender says.
type host struct {
	kind hostKind
	// port is the one that the sender connected to; that of the scheme where it names none.
	port string
}

func (u *Unit) hostOf(ctx *fasthttp.RequestCtx) host {
	name, port := splitHost(string(ctx.Host()), ctx.IsTLS())
	return host{kind: u.kindOf(name), port: port}
}

// kindOf distinguishes names of ours from others; name is without a port.
func (u *Unit) kindOf(name string) hostKind {
	name = strings.ToLower(name)
	if u.names[name] {
		return namedHost
	}
	if name == "localhost" {
		return loopbackHost
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	switch {
	case err != nil || ip.Zone() != "":
		return foreign
	case ip.Unmap().IsLoopback():
		return loopbackHost
	}
	return addressHost
}

func splitHost(of string, encrypted bool) (name, port string) {
	name, port, err := net.SplitHostPort(of)
	if err != nil {
		name, port = of, "80"
		if encrypted {
			port = "443"
		}
	}
	for _, digit := range port {
		if digit < '0' || digit > '9' {
			return "", ""
		}
	}
	return name, port
}
