package handler_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// What a user can write of one object at most: all annotations (256 KiB), and a whole object (1.5 MiB in etcd).
const (
	annotationRoom = 250 << 10
	objectRoom     = 1500 << 10
)

// attacker writes JSON that takes much memory. It has a seed, so that a failure can be repeated.
type attacker struct{ *rand.Rand }

// value returns JSON of about a size in bytes.
func (a attacker) value(size int) string {
	size = max(size, 16)
	unit := []string{`{"":0}`, `[]`, `0`, `""`, `null`, `{"":{"":{"":0}}}`, `[[[[]]]]`, `1e300`, `{"metadata":{"name":""}}`}[a.IntN(9)]
	switch a.IntN(5) {
	case 0:
		return `"` + strings.Repeat("a", size) + `"`
	case 1:
		depth := min(size/6, 9000)
		return strings.Repeat(`{"a":`, depth) + unit + strings.Repeat("}", depth)
	case 2:
		fields := make([]string, 0, size/10)
		for n := 0; n < size; n += len(unit) + 9 {
			fields = append(fields, fmt.Sprintf(`"%x":%s`, n, unit))
		}
		return "{" + strings.Join(fields, ",") + "}"
	case 3:
		return "[" + strings.TrimSuffix(strings.Repeat(unit+",", size/(len(unit)+1)), ",") + "]"
	default:
		return `{"spec":` + a.value(size/2) + `,"status":` + a.value(size/2) + `}`
	}
}

// entries returns a map of about a size in bytes. One makes its values.
func (a attacker) entries(size int, one func(size int) string) string {
	each := size
	for range a.IntN(5) {
		each /= 8
	}
	each = max(each, 24)
	var all []string
	for n := 0; n < size; n += each {
		all = append(all, fmt.Sprintf(`"%s%d":%s`, []string{"make", "resize", "unmake", ""}[a.IntN(4)], n, one(each)))
	}
	return `{"make":` + one(each) + "," + strings.Join(all, ",") + "}"
}

func (a attacker) essence(size int) string {
	switch a.IntN(4) {
	case 0:
		return `{"digest":"d","essence":` + a.value(size) + `}`
	case 1:
		return `{"digest":"d","views":` + a.entries(size, func(int) string { return `""` }) + `}`
	case 2:
		return `{"digest":"d","status":[` + strings.TrimSuffix(strings.Repeat(`"",`, size/3), ",") + `]}`
	}
	var text bytes.Buffer
	writer, _ := flate.NewWriter(&text, flate.BestCompression)
	_, _ = writer.Write([]byte(a.value(size * (1 + a.IntN(300)))))
	_ = writer.Close()
	return `{"digest":"d","packed":"` + base64.RawStdEncoding.EncodeToString(text.Bytes()) + `"}`
}

func (a attacker) entry(size int) string {
	open := `"cause":"create","outcome":"pending","seen":"d","since":"d"`
	switch a.IntN(4) {
	case 0:
		return `{` + open + `,"steps":` + a.entries(size, func(size int) string { return `{"result":` + a.value(size) + `}` }) + `}`
	case 1:
		return `{` + open + `,"steps":` + a.entries(size, func(int) string { return `{"intent":{"class":"hand","token":"t","by":"b"}}` }) + `}`
	case 2:
		return `{` + open + `,"former":[` + strings.TrimSuffix(strings.Repeat(`"",`, size/3), ",") + `]}`
	default:
		return `{` + open + `,"message":"` + strings.Repeat("a", size) + `"}`
	}
}

// record returns the text of a record of about a size in bytes.
func (a attacker) record(size int) string {
	parts := []string{`"v":1,"uid":"uid","base":"d"`}
	for range 1 + a.IntN(2) {
		switch share := size / (1 + a.IntN(2)); a.IntN(3) {
		case 0:
			parts = append(parts, `"handlers":`+a.entries(share, a.entry))
		case 1:
			parts = append(parts, `"unknown":`+a.value(share))
		default:
			one := a.essence(share / (1 + a.IntN(50)))
			parts = append(parts, `"seen":[`+strings.Join(repeat(one, share/len(one)+1), ",")+`]`)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func repeat(text string, times int) []string {
	all := make([]string, times)
	for i := range all {
		all[i] = text
	}
	return all
}

// body returns an object that is as large as it may be, with a hostile record in one of the carriers.
func (a attacker) body(t *testing.T) (object.Body, record.Carrier) {
	t.Helper()
	carrier := []record.Carrier{record.Annotation, record.Status}[a.IntN(2)]
	room := annotationRoom
	if carrier == record.Status {
		room = objectRoom
	}
	text := a.record(1 + a.IntN(room))
	body := object.Body{"metadata": object.Body{"uid": "uid", "name": "one"}}
	if left := objectRoom - len(text); left > 0 {
		var spec any
		if err := json.Unmarshal([]byte(a.value(1+a.IntN(left))), &spec); err != nil {
			t.Fatal(err)
		}
		body["spec"] = spec
	}
	return object.With(body, carrier.Path("x"), text), carrier
}

// What a user can write into an object makes an operator take at most 64 MiB more than at rest while it decides what to do.
func TestNoHostileObjectTakesMuchMemory(t *testing.T) {
	const objects, most = 300, 64 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	kind := handler.Kind{Handlers: append(makeAndResize(), declared("all", cause.Update), declared("unmake", cause.Delete))}
	var highest uint64
	for seed := range uint64(objects) {
		a := attacker{rand.New(rand.NewPCG(seed, 1))}
		body, carrier := a.body(t)
		used := peak(func() {
			found, err := record.Read(body, "x", carrier, record.FormerNewer)
			if err != nil {
				return // It is reported, and the object counts as one without a record.
			}
			plan := kind.Decide(handler.State{
				UID: "uid", APIVersion: "v1", Essence: object.Essence(body, "x", nil), Record: found.Record, Marked: true, Now: begin(),
			})
			_, _ = plan.Record.Encode()
		})
		highest = max(highest, used)
		if used > most {
			t.Errorf("seed %d: deciding takes %d MiB more than at rest, want at most %d", seed, used>>20, most>>20)
		}
	}
	t.Logf("at most %d MiB", highest>>20)
}

// peak returns by how many bytes the heap grows at most during a call.
func peak(call func()) uint64 {
	debug.FreeOSMemory()
	rest := heapBytes()
	most := make(chan uint64)
	ended := make(chan struct{})
	go func() {
		highest := rest
		for {
			select {
			case <-ended:
				most <- highest
				return
			default:
				highest = max(highest, heapBytes())
				runtime.Gosched()
			}
		}
	}()
	call()
	highest := max(rest, heapBytes())
	close(ended)
	return max(highest, <-most) - rest
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
