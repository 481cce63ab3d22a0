package acceptance

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	webScript = "echo served by a container >/tmp/index.html; echo started; exec httpd -f -p 8080 -h /tmp"
	webReady  = `, readinessProbe: {httpGet: {port: 8080, path: /index.html}, periodSeconds: 1}`
)

func (c inCluster) reachedByKubectl(t *testing.T) {
	c.create(t, shellPod("web", webScript, webReady),
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}}`,
		shellPod("client", "while :; do sleep 1; done", ""))
	c.awaitReady(t, "web")
	c.awaitReady(t, "client")
	if r := run(t, c.dir, "kubectl", "logs", "web"); r.stdout != "started\n" {
		t.Errorf("logs: %+v", r)
	}
	if r := run(t, c.dir, "kubectl", "exec", "web", "--", "id"); !strings.HasPrefix(r.stdout, "uid=0") {
		t.Errorf("exec: %+v", r)
	}
	service, err := c.client.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // kube-proxy needs a moment.
		r := run(t, c.dir, "kubectl", "exec", "client", "--", "wget", "-qO-", "http://"+service.Spec.ClusterIP+"/index.html")
		if r.stdout != "served by a container\n" {
			return fmt.Errorf("a Pod calls a Service: %+v", r)
		}
		return nil
	})
	copied := filepath.Join(t.TempDir(), "index.html")
	if r := run(t, c.dir, "kubectl", "cp", "web:/tmp/index.html", copied); r.code != 0 {
		t.Errorf("cp: %+v", r)
	}
	if text, err := os.ReadFile(copied); string(text) != "served by a container\n" {
		t.Errorf("copied %q: %v", text, err)
	}
	c.portForward(t)
}

func (c inCluster) portForward(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), "kubectl", "port-forward", "pod/web", ":8080")
	cmd.Dir, cmd.Env = c.dir, environment()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, _, found := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " -> ")
	if err != nil || !found {
		t.Fatalf("port-forward prints %q: %v", line, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/index.html", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	if text, err := io.ReadAll(response.Body); string(text) != "served by a container\n" {
		t.Errorf("port-forward gets %q: %v", text, err)
	}
	cancel()
	_ = cmd.Wait() // It was killed.
}

func (c inCluster) reachesTheAPIServer(t *testing.T) {
	c.create(t, shellPod("caller", "program version; sleep 3600", ""))
	eventually(t, func() error {
		if r := run(t, c.dir, "kubectl", "logs", "caller"); !strings.Contains(r.stdout, `"gitVersion": "`+kubernetesVersion(t)+`"`) {
			return fmt.Errorf("the Pod got %+v", r)
		}
		return nil
	})
}

// The logs of a container that has ended stay, those of one that runs can be followed to its end, and a program can be given input.
func (c inCluster) logsAndAttach(t *testing.T) {
	c.create(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: again}, spec: {terminationGracePeriodSeconds: 1, volumes: [{name: work, emptyDir: {}}],
  containers: [{name: c, image: "%s", volumeMounts: [{name: work, mountPath: /scratch}],
    command: [sh, -c, "cat /scratch/failed && exec sleep 3600; echo before; echo >/scratch/failed; exit 7"]}]}}`, busybox),
		fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: counts}, spec: {restartPolicy: Never,
  containers: [{name: c, image: "%s", command: [sh, -c, "for i in 1 2 3; do echo $i; sleep 0.5; done"]}]}}`, busybox),
		fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: reads}, spec: {restartPolicy: Never,
  containers: [{name: c, image: "%s", stdin: true, command: [sh, -c, "read line; echo got $line"]}]}}`, busybox))
	eventually(t, func() error { // It does not exist yet, then it waits for its start.
		if r := run(t, c.dir, "kubectl", "logs", "--follow", "counts"); r.stdout != "1\n2\n3\n" {
			return fmt.Errorf("logs --follow: %+v", r)
		}
		return nil
	})
	c.awaitRestart(t, "again")
	if r := run(t, c.dir, "kubectl", "logs", "--previous", "again"); !strings.HasSuffix(r.stdout, "\nbefore\n") {
		t.Errorf("logs --previous: %+v", r)
	}
	c.awaitReady(t, "reads")
	attach := exec.CommandContext(t.Context(), binary(t), "kubectl", "attach", "--stdin", "reads")
	attach.Dir, attach.Env, attach.Stdin = c.dir, environment(), strings.NewReader("a line\n")
	if out, err := attach.CombinedOutput(); err != nil {
		t.Errorf("attach: %v: %s", err, out)
	}
	eventually(t, func() error { return c.logged(t, "reads", "got a line\n") })
}

// The API server calls a webhook that a Service names, in the network of the node.
func (c inCluster) webhookInPod(t *testing.T) {
	certificate, key := selfSigned(t, "hook.default.svc")
	c.create(t, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: hook}, type: kubernetes.io/tls, data: {tls.crt: %s, tls.key: %s}}`, certificate, key),
		fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: hook, labels: {app: hook}}, spec: {
  containers: [{name: c, image: "%s", command: [program, webhook], readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1},
    volumeMounts: [{name: tls, mountPath: /tls}]}], volumes: [{name: tls, secret: {secretName: hook}}]}}`, busybox),
		`{apiVersion: v1, kind: Service, metadata: {name: hook}, spec: {selector: {app: hook}, ports: [{port: 443, targetPort: 8443}]}}`)
	c.awaitReady(t, "hook")
	c.create(t, fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hook}, webhooks: [{
  name: hook.example.org, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Fail,
  objectSelector: {matchLabels: {hooked: "yes"}}, rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}],
  clientConfig: {caBundle: %s, service: {namespace: default, name: hook}}}]}`, certificate))
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "hooked", Labels: map[string]string{"hooked": "yes"}}}
	eventually(t, func() error { // The API server needs a moment, and so does kube-proxy.
		_, err := c.client.CoreV1().ConfigMaps("default").Create(t.Context(), config, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "refused in a Pod") {
			return fmt.Errorf("the webhook was not asked: %w", err)
		}
		return nil
	})
}

// Pods find Services and the Pods of a StatefulSet by name, and other names as this machine does.
func (c inCluster) namesAreResolved(t *testing.T) {
	c.create(t, shellPod("asks", "while :; do sleep 1; done", ""),
		`{apiVersion: v1, kind: Service, metadata: {name: alias}, spec: {type: ExternalName, externalName: kubernetes.default.svc.cluster.local}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: peers}, spec: {clusterIP: None, selector: {app: peers}, ports: [{port: 80}]}}`,
		fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: peers}, spec: {serviceName: peers, replicas: 2, podManagementPolicy: Parallel,
  selector: {matchLabels: {app: peers}}, template: {metadata: {labels: {app: peers}}, spec: {terminationGracePeriodSeconds: 1,
    containers: [{name: c, image: "%s", command: [sh, -c, "while :; do sleep 1; done"]}]}}}}`, busybox))
	var addresses []string
	for _, name := range []string{"asks", "peers-0", "peers-1"} {
		c.awaitReady(t, name)
		pod, err := c.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, pod.Status.PodIP)
	}
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	own, err := net.DefaultResolver.LookupHost(t.Context(), machine)
	if err != nil {
		t.Fatal(err)
	}
	const server = "10.96.0.1"
	peers := addresses[1:]
	slices.Sort(own)
	want := []string{
		"kubernetes: " + server, "kubernetes.default: " + server, "kubernetes.default.svc.cluster.local.: " + server, "alias: " + server,
		"peers-0.peers: " + peers[0], "peers-1.peers.default.svc.cluster.local: " + peers[1],
		"peers: " + strings.Join(slices.Sorted(slices.Values(peers)), " "),
		"none: no such host", "none.peers: no such host", machine + ": " + strings.Join(own, " "),
	}
	ask := []string{"kubectl", "exec", "asks", "--", "program", "lookup"}
	for _, line := range want {
		name, _, _ := strings.Cut(line, ": ")
		ask = append(ask, name)
	}
	eventually(t, func() error { // The endpoints need a moment.
		if r := run(t, c.dir, ask...); r.stdout != strings.Join(want, "\n")+"\n" {
			return fmt.Errorf("got %+v, want %q", r, want)
		}
		return nil
	})
}

// selfSigned returns a certificate for a host name and its key, as base64 of PEM.
func selfSigned(t *testing.T, host string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, content []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
	}
	return text("CERTIFICATE", signed), text("PRIVATE KEY", encoded)
}
