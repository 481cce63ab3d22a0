package dns

import (
	"context"
	"net"
	"time"

	"github.com/miekg/dns"
)

// lookupTimeout is how long the machine may take to resolve a name. Resolvers of Pods ask again after five seconds.
const lookupTimeout = 4 * time.Second

// server answers queries of Pods.
type server struct {
	records records
	// machine opens a connection to ServeMachine.
	machine func(context.Context) (net.Conn, error)
}

// ServeDNS implements dns.Handler.
func (s server) ServeDNS(w dns.ResponseWriter, request *dns.Msg) {
	reply := new(dns.Msg).SetReply(request)
	reply.RecursionAvailable = true
	if len(request.Question) == 1 {
		reply.Answer, reply.Rcode = s.answer(request.Question[0])
		reply.Authoritative = dns.IsSubDomain(zone, dns.CanonicalName(request.Question[0].Name))
	} else {
		reply.Rcode = dns.RcodeFormatError
	}
	size := uint16(dns.MinMsgSize)
	if options := request.IsEdns0(); options != nil {
		size = max(size, options.UDPSize())
		reply.SetEdns0(size, false)
	}
	if w.LocalAddr().Network() == "udp" {
		reply.Truncate(int(size))
	}
	_ = w.WriteMsg(reply) // A client that is gone needs no answer.
}

// answer returns the records for a question and the code of the reply.
func (s server) answer(q dns.Question) (found []dns.RR, code int) {
	name := dns.CanonicalName(q.Name)
	switch {
	case q.Qclass != dns.ClassINET:
		return nil, dns.RcodeNotImplemented
	case !dns.IsSubDomain(zone, name):
		return s.ask(q)
	}
	found, exists := s.records.find(name, q.Qtype)
	if !exists {
		return nil, dns.RcodeNameError
	}
	for _, record := range found {
		record.Header().Name = q.Name // As the client wrote it: some compare it.
	}
	if len(found) == 0 || q.Qtype == dns.TypeCNAME {
		return found, dns.RcodeSuccess
	}
	if alias, ok := found[0].(*dns.CNAME); ok {
		more, code := s.target(dns.CanonicalName(alias.Target), q.Qtype)
		return append(found, more...), code
	}
	return found, dns.RcodeSuccess
}

// target returns the records of the target of a CNAME. It does not follow another one.
func (s server) target(name string, kind uint16) (found []dns.RR, code int) {
	if !dns.IsSubDomain(zone, name) {
		return s.ask(dns.Question{Name: name, Qtype: kind, Qclass: dns.ClassINET})
	}
	found, exists := s.records.find(name, kind)
	if !exists {
		return nil, dns.RcodeNameError
	}
	return found, dns.RcodeSuccess
}

// ask lets the machine resolve a name.
func (s server) ask(q dns.Question) (found []dns.RR, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	conn, err := s.machine(ctx)
	if err != nil {
		return nil, dns.RcodeServerFailure
	}
	defer func() { _ = conn.Close() }() // It has answered.
	client := dns.Client{Timeout: lookupTimeout}
	query := &dns.Msg{MsgHdr: dns.MsgHdr{Id: dns.Id(), RecursionDesired: true}, Question: []dns.Question{q}}
	reply, _, err := client.ExchangeWithConnContext(ctx, query, &dns.Conn{Conn: conn})
	if err != nil {
		return nil, dns.RcodeServerFailure
	}
	return reply.Answer, reply.Rcode
}
