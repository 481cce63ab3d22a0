package engine

import "fmt"

// State is what a server says of itself.
type State struct {
	// Used is how full its volume is, in percent. The script of the Pod measures it every five seconds.
	Used int32
	// Configuration is what manifest.Configuration returned for the configuration that the server has read last, or "".
	Configuration string
	// Refused says which parameters of its configuration the server does not accept, and why. It is "" if there are none.
	Refused string
	// Pending names the parameters that take effect only after a restart. It is "" if there are none.
	Pending string
	// Kept names the parameters that a standby has not lowered, because the primary had the higher values when the standby started: see server.sh.
	Kept string
	// Recovering reports whether the server is a standby.
	Recovering bool
	// Timeline is the last timeline of which a standby has received something, and Received how much of the write-ahead log it has, in bytes. They say nothing
	// of a primary. The control file of a standby would name the timeline too, but only some time later.
	Timeline, Received int64
	// Receiving reports whether a standby gets what its primary writes: then the server of the primary runs.
	Receiving bool
	// Unlogged reports whether there are unlogged tables. Standbys have them without rows.
	Unlogged bool
	// Forks are the timelines that the primary has left, with where it left them, in bytes of the write-ahead log. A standby says nothing of them.
	Forks map[int64]int64
	// Standbys are the standbys that have a slot, in the order of the slots. A standby has none itself.
	Standbys []Standby
}

// Standby is what a primary says of a standby.
type Standby struct {
	// Slot is the name of its replication slot.
	Slot string
	// Lost reports whether the primary has deleted what the standby needs.
	Lost bool
	// Copying reports whether it copies the primary.
	Copying bool
	// State is that of its connection in pg_stat_replication, such as "streaming" or "catchup". It is "" if there is none.
	State string
	// Lag is how many bytes of the write-ahead log it has not replayed.
	Lag int64
}

// Streams reports whether a standby gets what the primary writes. One that the primary does not know, which is nil, does not.
func (s *Standby) Streams() bool { return s != nil && s.State == "streaming" && !s.Copying }

// UsedPercent returns how full a volume is whose size and free space are given, in any unit.
func UsedPercent(text string) (int32, error) {
	var size, free int64
	if _, err := fmt.Sscanf(text, "%d %d", &size, &free); err != nil || size <= 0 || free < 0 || free > size {
		return 0, fmt.Errorf("the server says %q of its volume, want its size and what is free", text)
	}
	const whole = 100
	return int32(whole - whole*free/size), nil //nolint:gosec // From 0 to 100.
}
