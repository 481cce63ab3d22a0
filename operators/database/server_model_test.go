package main

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// volume is what a volume contains.
type volume struct {
	// copied reports whether it is the copy of a standby.
	copied bool
	// timeline counts the promotions, written is how much of what apps have written it has, and ended whether its server has ended in order.
	timeline, written int
	ended             bool
	// forked is what it had when it was promoted.
	forked int
	// connections is how many connections the primary accepted, as far as the volume knows.
	connections int
	// passwords are those of the users, by their names.
	passwords map[string]string
}

// follows reports whether a standby can follow a primary: it cannot if it has more of the timeline that the primary has left.
func (v *volume) follows(primary *volume) bool {
	return v.timeline == primary.timeline || v.written <= primary.forked
}

// configuration is what a server runs with: what it has read last, and with how many connections it has started. A standby has at least as many as the
// primary had then.
type configuration struct {
	loaded              string
	wanted, connections int
	kept                bool
	data                *volume
}

// start does what server.sh does.
func (n *modelNode) start(pod *corev1.Pod) {
	grant := strings.Fields(pod.Annotations[manifest.GrantAnnotation])
	if len(grant) < 2 || grant[0] != string(pod.UID) {
		return // It waits.
	}
	if image := serverImage(pod.Spec); image == n.missing {
		n.patchStatus(pod, fmt.Sprintf(`{"initContainerStatuses":[{"name":"data","ready":false,"restartCount":0,"image":%q,"imageID":"",
			"state":{"waiting":{"reason":"ImagePullBackOff"}}}]}`, image))
		return
	}
	restores, backup := manifest.Restores(pod.Spec)
	if restores != "" && backup == n.damaged {
		n.initialized(pod, 1, "RestoreFailed: the backup "+backup+" is damaged")
		return
	}
	data, problem := n.data(pod, strings.Join(grant[1:], " "))
	if problem != "" {
		n.initialized(pod, 1, problem)
	}
	if data == nil {
		return
	}
	if restores != "" {
		n.initialized(pod, 0, "Restored: "+backup+n.unrestored)
		return
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: databaseOf(pod) + "-config"}}
	n.w.Get(config)
	loaded, wanted := configured(config)
	n.mu.Lock()
	server := &configuration{loaded: loaded, wanted: wanted, connections: wanted, data: data}
	if data.copied {
		server.connections, server.kept = max(wanted, data.connections), data.connections > wanted
	} else {
		data.connections = wanted
	}
	n.servers[pod.Name] = server
	n.connected[pod.Name] = data.copied && !n.apart
	data.ended = false
	n.onlyOne()
	n.mu.Unlock()
	n.patchStatus(pod, `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`)
}

// initialized ends the init container of a Pod.
func (n *modelNode) initialized(pod *corev1.Pod, code int, message string) {
	state := fmt.Sprintf(`"state":{"terminated":{"exitCode":%d,"message":%q}}`, code, message)
	if code > 0 {
		state = fmt.Sprintf(`"lastState":{"terminated":{"exitCode":%d,"message":%q}}`, code, message)
	}
	n.patchStatus(pod, `{"initContainerStatuses":[{"name":"data","ready":false,"restartCount":1,"image":"i","imageID":"i",`+state+`}]}`)
}

// onlyOne expects that at most one server accepts writes.
func (n *modelNode) onlyOne() {
	var all []string
	for name, server := range n.servers {
		if !server.data.copied {
			all = append(all, name)
		}
	}
	if len(all) > 1 {
		n.w.Errorf("several servers accept writes: %v", all)
	}
}

// data returns what the volume of a Pod contains when its server starts, or nil if it does not start.
func (n *modelNode) data(pod *corev1.Pod, grant string) (data *volume, problem string) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: manifest.Claim(pod.Name)}}
	n.w.Get(claim)
	n.mu.Lock()
	data = n.volumes[claim.UID]
	n.mu.Unlock()
	switch {
	case grant == "standby":
		data, problem = n.follow(pod, data)
	case data == nil && strings.HasSuffix(grant, " initdb"):
		data = n.initialize(pod)
	case data == nil:
		problem = "DataMissing: the volume is empty"
	case data.copied && !strings.HasSuffix(grant, " promote"):
		return nil, "NotThePrimary: the volume holds the copy of a standby"
	}
	if data != nil {
		n.mu.Lock()
		n.volumes[claim.UID] = data
		n.mu.Unlock()
	}
	return data, problem
}

// initialize creates a database with the passwords of its Secrets.
func (n *modelNode) initialize(pod *corev1.Pod) *volume {
	data := &volume{passwords: map[string]string{}}
	for _, name := range manifest.Secrets(databaseIn(pod)) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}
		if !n.w.Get(secret) {
			n.w.Errorf("a server creates a database without the Secret %s", secret.Name)
		}
		data.passwords[string(secret.Data["username"])] = string(secret.Data["password"])
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.created++
	return data
}

// follow returns the data of a standby. A new one waits for the primary, and so does one that was the primary.
func (n *modelNode) follow(pod *corev1.Pod, has *volume) (data *volume, problem string) {
	leader := n.leader(databaseOf(pod))
	for leader == nil {
		if has != nil && has.copied {
			return has, ""
		}
		<-time.After(step)
		if n.ending(pod) {
			return nil, ""
		}
		leader = n.leader(databaseOf(pod))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	slot := manifest.Slot(ordinalOf(pod.Name))
	switch {
	case has != nil && !has.copied && has.timeline >= leader.timeline:
		return nil, "NotACopy: the volume holds a database that is not the copy of a standby"
	case has != nil && !has.copied && has.ended && has.written <= leader.forked:
		has.copied = true
	case has != nil && !has.copied:
		has = nil
	}
	if has != nil && n.slots[slot] {
		if has.follows(leader) {
			has.written, has.timeline, has.connections = leader.written, leader.timeline, leader.connections
		}
		return has, ""
	}
	n.slots[slot] = true
	return &volume{copied: true, passwords: leader.passwords, written: leader.written, timeline: leader.timeline, connections: leader.connections}, ""
}

// leader returns the data of the server that the Service for writes leads to, or nil.
func (n *modelNode) leader(database string) *volume {
	for ordinal := range manifest.MostReplicas {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "default", fmt.Sprintf("%s-%d", database, ordinal)
		if err := n.w.Client().Get(n.w.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.Labels[manifest.RoleLabel] != manifest.RolePrimary {
			continue
		}
		n.mu.Lock()
		server := n.servers[pod.Name]
		n.mu.Unlock()
		if server != nil && pod.DeletionTimestamp == nil {
			return server.data
		}
	}
	return nil
}

// end ends a server. That of a primary says that it has written everything, unless it is killed.
func (n *modelNode) end(pod *corev1.Pod) {
	n.mu.Lock()
	server := n.servers[pod.Name]
	delete(n.servers, pod.Name)
	killed := n.killed
	if server != nil {
		server.data.ended = !killed
		if n.deaf && !server.data.copied {
			n.written++
			server.data.written = n.written
		}
	}
	n.mu.Unlock()
	if server == nil || server.data.copied {
		return
	}
	said := ""
	if !killed {
		said = fmt.Sprintf("ShutDown: 0/%X", server.data.written)
	}
	n.patchStatus(pod, fmt.Sprintf(`{"containerStatuses":[{"name":%q,"ready":false,"restartCount":0,"image":"i","imageID":"i",
		"state":{"terminated":{"exitCode":0,"finishedAt":%q,"message":%q}}}]}`, pod.Spec.Containers[0].Name, time.Now().UTC().Format(time.RFC3339), said))
}

// configure lets the running servers read their configuration. MariaDB reads it only when it starts.
func (n *modelNode) configure(config *corev1.ConfigMap) {
	if config.Data["mariadb.cnf"] != "" {
		return
	}
	<-time.After(reload)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, server := range n.servers {
		server.loaded, server.wanted = configured(config)
	}
}

// configured returns what a configuration says of itself, and how many connections it wants.
func configured(config *corev1.ConfigMap) (of string, connections int) {
	_, of, _ = strings.Cut(config.Data["postgresql.conf"], "einmal.configuration = ")
	of += config.Data["configuration"] // Of MariaDB.
	_, text, set := strings.Cut(config.Data["parameters.conf"], "max_connections = ")
	connections = 100
	if set {
		_, _ = fmt.Sscanf(strings.TrimPrefix(text, "'"), "%d", &connections)
	}
	return strings.Trim(of, "'\n"), connections
}
