package awslab

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxRequest is the maximum size of a request in bytes.
const maxRequest = 1 << 20

const (
	ssmTarget = "AmazonSSM."
	xmlSpace  = "http://elasticache.amazonaws.com/doc/2015-02-02/"
	requestID = "00000000-0000-0000-0000-000000000000"
)

// call is a request of either service.
type call interface {
	service() string
	action() string
	resource() string
	do(l *Lab) (any, error)
	write(w http.ResponseWriter, answer any, err error)
}

func isWrite(action string) bool {
	return !strings.HasPrefix(action, "Get") && !strings.HasPrefix(action, "Describe") && !strings.HasPrefix(action, "List")
}

// readCall parses a request of either service.
func readCall(w http.ResponseWriter, r *http.Request) (call, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), ssmTarget); ok {
		asked := jsonCall{named: action}
		if err := json.Unmarshal(body, &asked.input); err != nil {
			return nil, errors.New("the request is not JSON")
		}
		return asked, nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("Action") == "" {
		return nil, errors.New("not a call of SSM or ElastiCache: neither the header X-Amz-Target " + ssmTarget + "* nor a form with an Action")
	}
	return queryCall{form}, nil
}

// jsonCall is a call of SSM: AWS JSON 1.1.
type jsonCall struct {
	named string
	input parameterInput
}

func (jsonCall) service() string  { return "ssm" }
func (c jsonCall) action() string { return c.named }

func (c jsonCall) resource() string {
	return cmp.Or(c.input.Name, c.input.ResourceID, c.input.Path, strings.Join(c.input.Names, ","))
}

func (c jsonCall) do(l *Lab) (any, error) { return l.ssm(c.named, c.input) }

func (jsonCall) write(w http.ResponseWriter, answer any, err error) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-Requestid", requestID)
	if failed, ok := errors.AsType[*failure](err); ok {
		w.Header().Set("X-Amzn-Errortype", failed.Code)
		w.WriteHeader(http.StatusBadRequest)
		answer = map[string]string{"__type": failed.Code, "message": failed.Message}
	}
	_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // the client may have disconnected
}

// queryCall is a call of ElastiCache: a form request with an XML response.
type queryCall struct{ form url.Values }

func (queryCall) service() string  { return "elasticache" }
func (c queryCall) action() string { return c.form.Get("Action") }

func (c queryCall) resource() string {
	return cmp.Or(c.form.Get("UserGroupId"), c.form.Get("UserId"))
}

func (c queryCall) do(l *Lab) (any, error) { return l.elasticache(c) }

// list returns the elements of a list, such as Passwords.member.1.
func (c queryCall) list(prefix string) []string {
	var found []string
	for i := 1; c.form.Has(prefix + "." + strconv.Itoa(i)); i++ {
		found = append(found, c.form.Get(prefix+"."+strconv.Itoa(i)))
	}
	return found
}

// ids returns a list of IDs in lower case, as AWS stores them.
func (c queryCall) ids(prefix string) []string {
	found := c.list(prefix + ".member")
	for i := range found {
		found[i] = strings.ToLower(found[i])
	}
	return found
}

func (c queryCall) write(w http.ResponseWriter, answer any, err error) {
	w.Header().Set("Content-Type", "text/xml")
	failed, ok := errors.AsType[*failure](err)
	body := xml.NewEncoder(w)
	if !ok {
		_ = respond(body, c.action(), answer) // the client may have disconnected
		return
	}
	w.WriteHeader(http.StatusBadRequest)
	var sent struct {
		XMLName xml.Name `xml:"http://elasticache.amazonaws.com/doc/2015-02-02/ ErrorResponse"`
		Error   struct{ Type, Code, Message string }
		ID      string `xml:"RequestId"`
	}
	sent.Error.Type, sent.Error.Code, sent.Error.Message, sent.ID = "Sender", failed.Code, failed.Message, requestID
	_ = body.Encode(sent)
}

// respond writes a response, wrapped in elements that are named after the action.
func respond(body *xml.Encoder, action string, answer any) error {
	root := xml.StartElement{Name: xml.Name{Space: xmlSpace, Local: action + "Response"}}
	return errors.Join(
		body.EncodeToken(root),
		body.EncodeElement(answer, xml.StartElement{Name: xml.Name{Local: action + "Result"}}),
		body.EncodeElement(struct {
			RequestID string `xml:"RequestId"`
		}{requestID}, xml.StartElement{Name: xml.Name{Local: "ResponseMetadata"}}),
		body.EncodeToken(root.End()),
		body.Flush(),
	)
}

// hangUp resets the connection.
func hangUp(w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // The server then closes the connection.
	}
	if plain, ok := connection.(*net.TCPConn); ok {
		_ = plain.SetLinger(0)
	}
	_ = connection.Close()
}

// tag is a tag in a request or response.
type tag struct{ Key, Value string }
