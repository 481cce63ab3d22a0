package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func probe(at *field.Path, p *corev1.Probe) field.ErrorList {
	if p == nil {
		return nil
	}
	refused := join(
		handler(at, p.Exec, p.HTTPGet, p.TCPSocket, when(p.GRPC != nil, nil)),
		atLeast0(at.Child("initialDelaySeconds"), int64(p.InitialDelaySeconds)),
		atLeast0(at.Child("timeoutSeconds"), int64(p.TimeoutSeconds)),
		atLeast0(at.Child("periodSeconds"), int64(p.PeriodSeconds)),
		atLeast0(at.Child("successThreshold"), int64(p.SuccessThreshold)),
		atLeast0(at.Child("failureThreshold"), int64(p.FailureThreshold)),
	)
	if p.GRPC != nil {
		refused = append(refused, portNumber(at.Child("grpc", "port"), p.GRPC.Port)...)
	}
	if seconds := p.TerminationGracePeriodSeconds; seconds != nil {
		refused = append(refused, when(*seconds <= 0, field.Invalid(at.Child("terminationGracePeriodSeconds"), seconds, "must be greater than 0"))...)
	}
	return refused
}

func lifecycleHandler(at *field.Path, h *corev1.LifecycleHandler) field.ErrorList {
	if h == nil {
		return nil
	}
	return handler(at, h.Exec, h.HTTPGet, h.TCPSocket, when(h.Sleep != nil, nil))
}

// handler checks that there is exactly one handler; further holds an element for each of another type.
func handler(at *field.Path, exec *corev1.ExecAction, get *corev1.HTTPGetAction, socket *corev1.TCPSocketAction, further field.ErrorList) field.ErrorList {
	var refused field.ErrorList
	handlers := len(further)
	one := func(name string, check func() field.ErrorList) {
		if handlers++; handlers > 1 {
			refused = append(refused, field.Forbidden(at.Child(name), "may not specify more than 1 handler type"))
			return
		}
		refused = append(refused, check()...)
	}
	if exec != nil {
		one("exec", func() field.ErrorList {
			return when(len(exec.Command) == 0, field.Required(at.Child("exec", "command"), ""))
		})
	}
	if get != nil {
		one("httpGet", func() field.ErrorList { return httpGet(at.Child("httpGet"), get) })
	}
	if socket != nil {
		one("tcpSocket", func() field.ErrorList { return portOrName(at.Child("tcpSocket", "port"), socket.Port) })
	}
	return append(refused, when(handlers == 0, field.Required(at, "must specify a handler type"))...)
}

func httpGet(at *field.Path, get *corev1.HTTPGetAction) field.ErrorList {
	refused := join(
		required(at.Child("path"), get.Path),
		portOrName(at.Child("port"), get.Port),
		oneOf(at.Child("scheme"), get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS),
	)
	for _, header := range get.HTTPHeaders {
		refused = append(refused, invalid(at.Child("httpHeaders"), header.Name, validation.IsHTTPHeaderName(header.Name)...)...)
	}
	return refused
}

// resources checks what a container asks for.
func resources(at *field.Path, r *corev1.ResourceRequirements) field.ErrorList {
	var refused field.ErrorList
	for name, limit := range r.Limits {
		refused = append(refused, quantity(at.Child("limits").Key(string(name)), limit)...)
	}
	for name, request := range r.Requests {
		here := at.Child("requests").Key(string(name))
		refused = append(refused, quantity(here, request)...)
		limit, limited := r.Limits[name]
		refused = append(refused, when(limited && request.Cmp(limit) > 0, field.Invalid(at.Child("requests"), request.String(),
			fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))...)
	}
	return refused
}

func quantity(at *field.Path, value resource.Quantity) field.ErrorList {
	return when(value.Sign() < 0, field.Invalid(at, value.String(), notNegative))
}

func securityContext(at *field.Path, s *corev1.SecurityContext) field.ErrorList {
	if s == nil {
		return nil
	}
	refused := join(
		identity(at.Child("runAsUser"), s.RunAsUser, validation.IsValidUserID),
		identity(at.Child("runAsGroup"), s.RunAsGroup, validation.IsValidGroupID),
	)
	if s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation {
		privileged := s.Privileged != nil && *s.Privileged
		refused = append(refused, when(privileged, field.Invalid(at, s, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))...)
	}
	return refused
}

func identity(at *field.Path, id *int64, check func(int64) []string) field.ErrorList {
	if id == nil {
		return nil
	}
	return invalid(at, *id, check(*id)...)
}

func podSecurityContext(at *field.Path, s *corev1.PodSecurityContext) field.ErrorList {
	if s == nil {
		return nil
	}
	refused := join(
		identity(at.Child("runAsUser"), s.RunAsUser, validation.IsValidUserID),
		identity(at.Child("runAsGroup"), s.RunAsGroup, validation.IsValidGroupID),
		identity(at.Child("fsGroup"), s.FSGroup, validation.IsValidGroupID),
		optionalOneOf(at.Child("fsGroupChangePolicy"), s.FSGroupChangePolicy, corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch),
	)
	for i, group := range s.SupplementalGroups {
		refused = append(refused, invalid(at.Child("supplementalGroups").Index(i), group, validation.IsValidGroupID(group)...)...)
	}
	return refused
}
