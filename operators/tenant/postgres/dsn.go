package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

// escapeRemedy is the remedy for a password that the driver would split into parts of a URL.
const escapeRemedy = "percent-encode the user and the password, for example @ as %40, / as %2F, ? as %3F, # as %23, % as %25 and a space as %20"

// quoteRemedy is the remedy for a password that the driver would split into options.
const quoteRemedy = `enclose the password in single quotes and write ' in it as \' and \ as \\`

// parseDSN parses a connection string. It refuses a string that can be read in two ways, because the driver would then use a part of the password
// as a host, a database or an option, and show it in errors and name lookups. Errors contain no text of the DSN, and no text of the driver.
func parseDSN(dsn credential.Password) (*pgxpool.Config, error) {
	if err := checkDSN(dsn.Reveal()); err != nil {
		return nil, fmt.Errorf("parse the PostgreSQL DSN: %w", err)
	}
	settings, err := pgxpool.ParseConfig(dsn.Reveal())
	if err != nil {
		return nil, fmt.Errorf("parse the PostgreSQL DSN: %w", withoutText(err))
	}
	// Those of the environment or of a service file, if the DSN has none.
	for _, one := range append([]*pgconn.FallbackConfig{{Host: settings.ConnConfig.Host}}, settings.ConnConfig.Fallbacks...) {
		if !validHost(one.Host) {
			return nil, errors.New("parse the PostgreSQL DSN: a host is invalid; correct PGHOST or the service file, or name the host in the DSN")
		}
	}
	return settings, nil
}

// withoutText describes an error of the driver's parser, whose text can contain any part of the DSN.
func withoutText(err error) error {
	var number syscall.Errno
	if _, is := errors.AsType[*fs.PathError](err); is && errors.As(err, &number) {
		return fmt.Errorf("read a file that sslrootcert, sslcert or sslkey names: %w; mount the file, or correct the option", number)
	}
	return errors.New("an option is invalid; check the values of sslmode and of the other options in the DSN, the certificates that it names, " +
		"and the PG… variables of the operator's environment")
}

// checkDSN returns an error unless the DSN can be read in one way only. The error contains no text of the DSN.
func checkDSN(dsn string) error {
	if strings.Trim(dsn, " ") == "" {
		return errors.New("it is empty; write postgres://user:password@host:5432/postgres?sslmode=verify-full")
	}
	if !utf8.ValidString(dsn) || strings.ContainsFunc(dsn, unicode.IsControl) {
		return errors.New("it contains a line break, another control character or invalid UTF-8; remove it, or percent-encode it in a password")
	}
	split := splitKeywords
	scheme, rest, is := strings.Cut(dsn, "://")
	switch {
	case is && (scheme == "postgres" || scheme == "postgresql"):
		dsn, split = rest, splitURL
	case is && !strings.Contains(scheme, "="):
		return errors.New("a URL must begin with postgres:// or postgresql://, without spaces or quotes before it; correct the beginning")
	}
	parts, err := split(dsn)
	if err != nil {
		return err
	}
	return parts.check()
}

// dsnParts are the parts of a DSN. Its keys are known options.
type dsnParts map[string]string

// add adds an option. An option that is unknown or given twice can be a part of a password.
func (p dsnParts) add(key, value string) error {
	if key == "dbname" {
		key = "database"
	}
	if !isOption(key) {
		return errors.New("it has an unknown option, which can be a part of the password; " + escapeRemedy + "; in the key=value format, " + quoteRemedy +
			"; set other parameters of the server with options=-c name=value")
	}
	if _, twice := p[key]; twice {
		return errors.New("the host, the port, the user, the password, the database or another option is given twice, " +
			"and one can be a part of the password; remove one; " + escapeRemedy + "; in the key=value format, " + quoteRemedy)
	}
	p[key] = value
	return nil
}

// check returns an error for a part that cannot be what it stands for.
func (p dsnParts) check() error {
	for host := range strings.SplitSeq(p["host"], ",") {
		if host != "" && !validHost(host) {
			return errors.New("a host is not a host name, an IP address or the directory of a socket, and can be a part of the password; " +
				"correct the host; " + escapeRemedy)
		}
	}
	for port := range strings.SplitSeq(p["port"], ",") {
		if number, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || number == 0) {
			return errors.New("a port is not a number from 1 to 65535, and can be a part of the password; correct the port; " + escapeRemedy)
		}
	}
	if hasReserved(p["user"]) {
		return errors.New("the user contains : or / or ? or #, so it can contain the password; separate user and password with a colon that is not encoded")
	}
	if hasReserved(p["database"]) || strings.Contains(p["database"], "@") {
		return errors.New("the database contains @ or : or / or ? or #, so it can contain the password; correct the database; " + escapeRemedy)
	}
	return nil
}

// hasReserved reports whether a name has a character that separates parts of a URL.
func hasReserved(name string) bool {
	return strings.ContainsAny(name, ":/?#") || strings.ContainsFunc(name, unicode.IsControl)
}

// splitURL splits a URL without its scheme, as the driver does, and refuses what other parsers would split differently.
func splitURL(text string) (dsnParts, error) {
	parts := dsnParts{}
	if _, err := url.PathUnescape(text); err != nil || strings.Contains(text, "%00") {
		return nil, errors.New("a percent sign is not followed by two hexadecimal digits other than 00; " + escapeRemedy)
	}
	if strings.ContainsFunc(text, unicode.IsSpace) || strings.Contains(text, "#") || strings.Count(text, "@") > 1 {
		return nil, errors.New("it contains a second @, a # or a space, which can be a part of the password; " + escapeRemedy)
	}
	if login, rest, is := strings.Cut(text, "@"); is {
		if strings.ContainsAny(login, "/?[]") {
			return nil, errors.New("it contains a / or ? or a bracket before the @, which can be a part of the password; " + escapeRemedy)
		}
		user, password, _ := strings.Cut(login, ":")
		if err := parts.addEscaped(map[string]string{"user": user, "password": password}); err != nil {
			return nil, err
		}
		text = rest
	}
	text, query, _ := strings.Cut(text, "?")
	addresses, database, _ := strings.Cut(text, "/")
	hosts, ports := splitAddresses(addresses)
	if err := parts.addEscaped(map[string]string{"host": hosts, "port": ports, "database": database}); err != nil {
		return nil, err
	}
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if query == "" {
			break
		}
		key, _ = url.PathUnescape(key) // The whole text was checked.
		value, _ = url.PathUnescape(value)
		if err := parts.add(key, value); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// addEscaped adds parts of a URL that are not empty.
func (p dsnParts) addEscaped(parts map[string]string) error {
	for key, value := range parts {
		if strings.Trim(value, ",") == "" {
			continue
		}
		value, err := url.PathUnescape(value)
		if err != nil {
			return errors.New("a percent sign is not followed by two hexadecimal digits; " + escapeRemedy)
		}
		if err := p.add(key, value); err != nil {
			return err
		}
	}
	return nil
}

// splitAddresses splits the addresses of a URL into lists of hosts and of ports. It keeps what is not an address, for check to refuse it.
func splitAddresses(addresses string) (hosts, ports string) {
	var allHosts, allPorts []string
	for address := range strings.SplitSeq(addresses, ",") {
		host, port, _ := strings.Cut(address, ":")
		if inside, after, is := strings.Cut(strings.TrimPrefix(address, "["), "]"); is && strings.HasPrefix(address, "[") && isIP(inside) {
			host = inside
			if rest, is := strings.CutPrefix(after, ":"); is || after == "" {
				port = rest
			} else {
				port = after // Not a number.
			}
		}
		allHosts, allPorts = append(allHosts, host), append(allPorts, port)
	}
	return strings.Join(allHosts, ","), strings.Join(allPorts, ",")
}

// splitKeywords splits a DSN in the key=value format, as the driver does. It refuses a value that continues after its closing quote, and a backslash
// before other characters than a quote and a backslash.
func splitKeywords(text string) (dsnParts, error) {
	parts := dsnParts{}
	for text = strings.Trim(text, " "); text != ""; text = strings.Trim(text, " ") {
		key, rest, is := strings.Cut(text, "=")
		if !is {
			return nil, errors.New("it is not a URL, and an option has no value, which can be a part of the password; " + quoteRemedy)
		}
		value, rest, ok := cutValue(strings.Trim(rest, " "))
		if !ok {
			return nil, errors.New("the quotes or backslashes of a value are incomplete; " + quoteRemedy)
		}
		if err := parts.add(strings.Trim(key, " "), value); err != nil {
			return nil, err
		}
		text = rest
	}
	return parts, nil
}

// cutValue returns the value at the beginning of a text in the key=value format, and the rest. It reports whether the value is complete.
func cutValue(text string) (value, rest string, ok bool) {
	body, quoted := strings.CutPrefix(text, "'")
	var read strings.Builder
	for i := 0; i < len(body); i++ {
		switch char := body[i]; {
		case char == '\\':
			if i++; i == len(body) || body[i] != '\\' && body[i] != '\'' {
				return "", "", false
			}
		case quoted && char == '\'':
			rest = body[i+1:]
			return read.String(), rest, rest == "" || rest[0] == ' '
		case !quoted && char == ' ':
			return read.String(), body[i:], true
		}
		read.WriteByte(body[i])
	}
	return read.String(), "", !quoted
}

// validHost reports whether a text is a host name, an IP address or an absolute path.
func validHost(host string) bool {
	if strings.HasPrefix(host, "/") {
		return !strings.ContainsFunc(host, func(r rune) bool { return r != '/' && r != '.' && !isLabelRune(r) })
	}
	if isIP(host) {
		return true
	}
	if len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.ContainsFunc(label, func(r rune) bool { return !isLabelRune(r) }) {
			return false
		}
	}
	return true
}

// isLabelRune reports whether a character can be in a label of a host name. Names of containers have underscores.
func isLabelRune(r rune) bool {
	return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// isIP reports whether a text is an IP address. The zone of an IPv6 address can only be the name of a network interface.
func isIP(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && !strings.ContainsFunc(address.Zone(), func(r rune) bool { return r != '.' && !isLabelRune(r) })
}
