package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// ServeMachine answers queries for addresses as programs of this machine resolve them, also from its file of hosts, until the context ends. A
// query for another type of record gets the code NOTIMP.
func ServeMachine(ctx context.Context, l net.Listener) {
	s := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, request *dns.Msg) {
		reply := new(dns.Msg).SetReply(request)
		if len(request.Question) == 1 {
			reply.Answer, reply.Rcode = resolve(ctx, request.Question[0])
		} else {
			reply.Rcode = dns.RcodeFormatError
		}
		_ = w.WriteMsg(reply) // A client that is gone needs no answer.
	})}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	_ = s.ActivateAndServe() // It ends with the listener.
}

// resolve looks up the addresses of a name.
func resolve(ctx context.Context, q dns.Question) (found []dns.RR, code int) {
	if q.Qtype != dns.TypeA && q.Qtype != dns.TypeAAAA {
		return nil, dns.RcodeNotImplemented
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	name := q.Name
	if dns.CountLabel(name) == 1 {
		name = strings.TrimSuffix(name, ".") // With a dot, the resolver does not find it in the file of hosts.
	}
	resolver := net.Resolver{PreferGo: true}
	// It looks for both types: a name that has addresses of the other type exists.
	all, err := resolver.LookupNetIP(ctx, "ip", name)
	if failure, ok := errors.AsType[*net.DNSError](err); ok && failure.IsNotFound {
		return nil, dns.RcodeNameError
	}
	if err != nil {
		return nil, dns.RcodeServerFailure
	}
	for _, ip := range all {
		if record := addressRecord(q, ip.Unmap()); record != nil {
			found = append(found, record)
		}
	}
	return found, dns.RcodeSuccess
}

// addressRecord returns a record of the type of a question, or nil for an address of another type.
func addressRecord(q dns.Question, ip netip.Addr) dns.RR {
	switch {
	case q.Qtype == dns.TypeA && ip.Is4():
		return &dns.A{Hdr: header(q.Name, dns.TypeA), A: ip.AsSlice()}
	case q.Qtype == dns.TypeAAAA && ip.Is6():
		return &dns.AAAA{Hdr: header(q.Name, dns.TypeAAAA), AAAA: ip.AsSlice()}
	}
	return nil
}
