package cluster

import (
	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
)

// The names of the components, which are arguments of the child processes.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	nodes             = "nodes"
	volumes           = "volumes"
)

// etcdSocket is the socket between etcd and the API server, relative to the data
// directory, which is the working directory of both.
const etcdSocket = "etcd.sock"

// etcdReady is the file that the etcd component creates when it is ready.
const etcdReady = "etcd.ready"

func (r *running) apiServerArgs() []string {
	if !r.RealNode {
		return apiServerArgs(r.dir, r.server)
	}
	// Later flags win.
	return append(apiServerArgs(r.dir, r.server), realNodeArgs(r.dir)...)
}

// realNodeArgs are the arguments with which the API server is known to the Pods of
// a real node, and reaches its kubelet.
func realNodeArgs(d instance.Dir) []string {
	return []string{
		"--egress-selector-config-file=" + realLayout(d).EgressFile(),
		"--advertise-address=" + realnode.Address,
		"--endpoint-reconciler-type=lease",
		"--kubelet-client-certificate=" + d.File(pkiDir, "apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + d.File(pkiDir, "apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + d.File(pkiDir, "ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
	}
}

func realLayout(d instance.Dir) realnode.Layout {
	return realnode.Layout{Data: d.Path, Pki: d.File(pkiDir)}
}

func apiServerArgs(d instance.Dir, p port) []string {
	return []string{
		"--etcd-servers=unix://" + etcdSocket,
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--secure-port=" + p.String(),
		"--permit-port-sharing=true",
		// Endpoints must not be loopback addresses, so the Service "kubernetes"
		// has none. Simulated Pods do not use it.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + realnode.ServiceRange,
		"--tls-cert-file=" + d.File(pkiDir, "apiserver.crt"),
		"--tls-private-key-file=" + d.File(pkiDir, "apiserver.key"),
		"--client-ca-file=" + d.File(pkiDir, "ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + d.File(pkiDir, signingKey),
		"--service-account-signing-key-file=" + d.File(pkiDir, signingKey),
		"--requestheader-client-ca-file=" + d.File(pkiDir, "front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + d.File(pkiDir, "front-proxy-client.crt"),
		"--proxy-client-key-file=" + d.File(pkiDir, "front-proxy-client.key"),
		"--profiling=false",
		// Close open watches at shutdown instead of waiting for them.
		"--shutdown-watch-termination-grace-period=500ms",
	}
}

// servingArgs returns the common arguments of the controller manager and the
// scheduler.
func servingArgs(d instance.Dir, p port, name string) []string {
	config := d.File(pkiDir, name+".kubeconfig")
	return []string{
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--authentication-skip-lookup=true",
		"--client-ca-file=" + d.File(pkiDir, "ca.crt"),
		"--bind-address=" + loopback,
		"--secure-port=" + p.String(),
		"--permit-port-sharing=true",
		"--tls-cert-file=" + d.File(pkiDir, name+".crt"),
		"--tls-private-key-file=" + d.File(pkiDir, name+".key"),
		"--leader-elect=false",
		"--profiling=false",
	}
}

func controllerManagerArgs(d instance.Dir, p port) []string {
	return append(servingArgs(d, p, controllerManager),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+d.File(pkiDir, signingKey),
		"--root-ca-file="+d.File(pkiDir, "ca.crt"),
		"--cluster-signing-cert-file="+d.File(pkiDir, "ca.crt"),
		"--cluster-signing-key-file="+d.File(pkiDir, "ca.key"),
		"--allocate-node-cidrs=false",
		"--controller-start-interval=0s",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
}

func schedulerArgs(d instance.Dir, p port) []string {
	return append(servingArgs(d, p, scheduler), "--kube-api-qps=500", "--kube-api-burst=1000")
}
