package contract

import (
	"net/http"
	"strings"
)

func (w *world) services() target { return w.in("v1", "services", "Service") }

// service is a Service named a with a port.
func (w *world) service(parts ...object) object {
	base := object{"spec.ports": []object{{"port": 80}}, "spec.selector": object{"app": "a"}}
	return w.services().new("a", append([]object{base}, parts...)...)
}

func servicePorts() []behaviour {
	ports := func(ports ...object) object { return object{"spec.ports": ports} }
	return []behaviour{
		{"service: a port out of range is 422", func(w *world) {
			w.services().invalid(w.service(ports(object{"port": 99999})),
				"spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive")
		}},
		{"service: two ports without names are 422", func(w *world) {
			w.services().invalid(w.service(ports(object{"port": 80}, object{"port": 81})),
				"spec.ports[0].name: Required value", "spec.ports[1].name: Required value")
		}},
		{"service: two ports with one number or one name are 422", func(w *world) {
			same := ports(object{"port": 80, "name": "x"}, object{"port": 80, "name": "x"})
			w.services().invalid(w.service(same), "spec.ports[1].name: Duplicate value", "spec.ports[1]: Duplicate value")
		}},
		{"service: a bad protocol or target is 422", func(w *world) {
			bad := ports(object{"port": 80, "protocol": "HTTP", "targetPort": "a_b"})
			w.services().invalid(w.service(bad), `spec.ports[0].protocol: Unsupported value: "HTTP"`, "spec.ports[0].targetPort: Invalid value")
		}},
		{"service: one without ports is 422", func(w *world) {
			w.services().invalid(w.services().new("a", object{"spec.selector": object{"app": "a"}}), "spec.ports: Required value")
		}},
		{"service: a bad selector is 422", func(w *world) {
			w.services().invalid(w.service(object{"spec.selector": object{"app": "a b"}}), "spec.selector: Invalid value")
		}},
	}
}

func serviceAddresses() []behaviour {
	return []behaviour{
		{"service: a bad address is 422", func(w *world) {
			w.services().invalid(w.service(object{"spec.clusterIP": "here"}), `spec.clusterIPs[0]: Invalid value: "here": must be a valid IP address`)
		}},
		{"service: an address out of range is 422", func(w *world) {
			w.services().invalid(w.service(object{"spec.clusterIP": "192.0.2.1"}),
				"spec.clusterIPs: Invalid value", "failed to allocate IP 192.0.2.1: the provided network does not match the current range")
		}},
	}
}

func serviceNodePorts() []behaviour {
	return []behaviour{
		{"service: a NodePort Service gets ports of nodes and keeps them", func(w *world) {
			made := w.services().post(w.service(object{"spec.type": "NodePort"})).is(http.StatusCreated)
			port, _ := made.at("spec.ports.0.nodePort").(int64)
			if port < 30000 || port > 32767 {
				w.Errorf("the port is %d", port)
			}
			again := w.services().put(w.service(object{"spec.type": "NodePort", "spec.selector": object{"app": "b"}})).ok()
			w.want(again, "spec.ports.0.nodePort", port)
			w.want(again, "spec.clusterIP", made.text("spec.clusterIP"))
			inside := w.services().merge("a", object{"spec": object{"type": "ClusterIP"}}).ok()
			w.want(inside, "spec.ports.0.nodePort", nil)
		}},
		{"service: a port of nodes out of range is 422", func(w *world) {
			w.services().invalid(w.service(object{"spec.type": "NodePort", "spec.ports": []object{{"port": 80, "nodePort": 80}}}),
				"spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767")
			w.services().invalid(w.service(object{"spec.ports": []object{{"port": 80, "nodePort": 30080}}}),
				"spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'")
		}},
		{"service: a headless one has no address", func(w *world) {
			made := w.services().post(w.service(object{"spec.clusterIP": "None"})).is(http.StatusCreated)
			w.want(made, "spec.clusterIPs", []string{"None"})
			w.services().invalid(w.service(object{"spec.clusterIP": "None", "spec.type": "NodePort"}), "may not be set to 'None' for NodePort services")
		}},
		{"service: the creator does not own its addresses", func(w *world) {
			made := w.services().post(w.service(object{"spec.type": "NodePort"})).is(http.StatusCreated)
			fields := made.at("metadata.managedFields.0.fieldsV1.f:spec")
			owned := object{"fields": fields}
			for _, name := range []string{"f:clusterIP", "f:clusterIPs", "f:ipFamilies", "f:ipFamilyPolicy"} {
				w.want(owned, "fields."+name, nil)
			}
			w.want(owned, "fields.f:sessionAffinity", object{})
			port := object{"spec": object{"clusterIP": made.text("spec.clusterIP"), "ipFamilies": []string{"IPv4"}}}
			body := w.services().new("a").with("spec", port["spec"])
			w.services().apply("other", body).ok()
		}},
		{"service: its address cannot be changed", func(w *world) {
			made := w.services().post(w.service()).is(http.StatusCreated)
			w.services().put(made.with("spec.clusterIP", "10.96.7.7").with("spec.clusterIPs", []string{"10.96.7.7"})).refused(
				http.StatusUnprocessableEntity, "Invalid", "may not change once set")
			if address := w.services().get("a").text("spec.clusterIP"); !strings.HasPrefix(address, "10.96.") {
				w.Errorf("the address is %s", address)
			}
		}},
	}
}
