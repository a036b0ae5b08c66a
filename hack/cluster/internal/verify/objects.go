// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

// user is the user, group and fsGroup of every pod.
const user = 65532

// pod is a pod that runs one command to its end, as Pod Security `restricted` wants it.
func (v Verifier) pod(name, image string, command ...string) object {
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": name, "namespace": namespace},
		"spec": object{
			"restartPolicy":                 "Never",
			"terminationGracePeriodSeconds": 1,
			"automountServiceAccountToken":  false,
			"securityContext": object{
				"runAsNonRoot": true, "runAsUser": user, "runAsGroup": user, "fsGroup": user,
				"seccompProfile": object{"type": "RuntimeDefault"},
			},
			"containers": []object{container("main", image, command...)},
		},
	}
}

func container(name, image string, command ...string) object {
	return object{
		"name": name, "image": image, "imagePullPolicy": "Never", "command": command,
		"securityContext": object{"allowPrivilegeEscalation": false, "capabilities": object{"drop": []string{"ALL"}}},
	}
}

// claim asks for a volume of the default class.
func claim(name string) object {
	return object{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim",
		"metadata": object{"name": name, "namespace": namespace},
		"spec": object{
			"accessModes": []string{"ReadWriteOnce"},
			"resources":   object{"requests": object{"storage": "64Mi"}},
		},
	}
}

// withClaim mounts a claim's volume at /data.
func withClaim(pod object, claim string) object {
	spec := pod["spec"].(object)
	spec["volumes"] = []object{{"name": "data", "persistentVolumeClaim": object{"claimName": claim}}}
	spec["containers"].([]object)[0]["volumeMounts"] = []object{{"name": "data", "mountPath": "/data"}}
	return pod
}
