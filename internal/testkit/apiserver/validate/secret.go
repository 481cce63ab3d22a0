package validate

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const immutable = "field is immutable when `immutable` is set"

// Secret checks a Secret, and that its type has the keys that it needs.
func Secret(object, old *corev1.Secret) field.ErrorList {
	data := field.NewPath("data")
	refused := join(keys(data, object.Data), size(data, lengths(object.Data)), typed(data, object))
	if old == nil {
		return refused
	}
	refused = append(refused, metavalidation.ValidateImmutableField(object.Type, old.Type, field.NewPath("type"))...)
	return append(refused, frozen(old.Immutable, object.Immutable, map[string]bool{
		"data": equality.Semantic.DeepEqual(old.Data, object.Data),
	})...)
}

// typed checks the keys of the types that Kubernetes knows.
func typed(data *field.Path, object *corev1.Secret) field.ErrorList {
	has := func(key string) bool {
		_, found := object.Data[key]
		return found
	}
	switch object.Type {
	case corev1.SecretTypeServiceAccountToken:
		return when(object.Annotations[corev1.ServiceAccountNameKey] == "",
			field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
	case corev1.SecretTypeDockercfg:
		return jsonKey(data, object, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		return jsonKey(data, object, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		if has(corev1.BasicAuthUsernameKey) || has(corev1.BasicAuthPasswordKey) {
			return nil
		}
		return field.ErrorList{
			field.Required(data.Key(corev1.BasicAuthUsernameKey), ""), field.Required(data.Key(corev1.BasicAuthPasswordKey), ""),
		}
	case corev1.SecretTypeSSHAuth:
		return when(len(object.Data[corev1.SSHAuthPrivateKey]) == 0, field.Required(data.Key(corev1.SSHAuthPrivateKey), ""))
	case corev1.SecretTypeTLS:
		return join(
			when(!has(corev1.TLSCertKey), field.Required(data.Key(corev1.TLSCertKey), "")),
			when(!has(corev1.TLSPrivateKeyKey), field.Required(data.Key(corev1.TLSPrivateKeyKey), "")),
		)
	default:
		return nil
	}
}

// jsonKey checks a key whose value must be a JSON object.
func jsonKey(data *field.Path, object *corev1.Secret, key string) field.ErrorList {
	text, found := object.Data[key]
	if !found {
		return field.ErrorList{field.Required(data.Key(key), "")}
	}
	if err := json.Unmarshal(text, &map[string]any{}); err != nil {
		return field.ErrorList{field.Invalid(data.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

// ConfigMap checks a ConfigMap.
func ConfigMap(object, old *corev1.ConfigMap) field.ErrorList {
	data := field.NewPath("data")
	refused := join(
		keys(data, object.Data), keys(field.NewPath("binaryData"), object.BinaryData),
		size(field.NewPath(""), append(lengths(object.Data), lengths(object.BinaryData)...)),
	)
	for key := range object.Data {
		_, both := object.BinaryData[key]
		refused = append(refused, when(both, field.Invalid(data.Key(key), key, "duplicate of key present in binaryData"))...)
	}
	if old == nil {
		return refused
	}
	return append(refused, frozen(old.Immutable, object.Immutable, map[string]bool{
		"data":       equality.Semantic.DeepEqual(old.Data, object.Data),
		"binaryData": equality.Semantic.DeepEqual(old.BinaryData, object.BinaryData),
	})...)
}

func keys[V any](path *field.Path, data map[string]V) field.ErrorList {
	var refused field.ErrorList
	for key := range data {
		refused = append(refused, invalid(path.Key(key), key, validation.IsConfigMapKey(key)...)...)
	}
	return refused
}

// frozen checks that what is immutable stays so.
func frozen(was, is *bool, same map[string]bool) field.ErrorList {
	if was == nil || !*was {
		return nil
	}
	refused := when(is == nil || !*is, field.Forbidden(field.NewPath("immutable"), immutable))
	for _, name := range []string{"data", "binaryData"} {
		if unchanged, known := same[name]; known && !unchanged {
			refused = append(refused, field.Forbidden(field.NewPath(name), immutable))
		}
	}
	return refused
}

// size checks that the values are not longer than a ConfigMap or Secret may be.
func size(path *field.Path, values []int) field.ErrorList {
	total := 0
	for _, value := range values {
		total += value
	}
	return when(total > corev1.MaxSecretSize, field.TooLong(path, "", corev1.MaxSecretSize))
}

func lengths[V string | []byte](data map[string]V) []int {
	var found []int
	for _, value := range data {
		found = append(found, len(value))
	}
	return found
}
