package realnode

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// graceAnnotation is where the kubelet notes the grace period of a container's Pod, in seconds.
	graceAnnotation = "io.kubernetes.pod.terminationGracePeriod"
	// longestGrace is the longest time that a container gets to stop when the cluster stops.
	longestGrace = 30 * time.Second
	// answerTime is how much longer than its grace period the stop of a container may take.
	answerTime = 5 * time.Second
)

// stopContainers stops all containers as the kubelet does, with SIGTERM and, after the grace period of their Pod, SIGKILL. Hooks before the stop do
// not run: the kubelet would run them, but it would also start the containers again.
func stopContainers() error {
	conn, err := grpc.NewClient("unix://"+containerdSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // Everything has been answered.
	runtime := criv1.NewRuntimeServiceClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), longestGrace+answerTime)
	defer cancel()
	running := &criv1.ContainerFilter{State: &criv1.ContainerStateValue{State: criv1.ContainerState_CONTAINER_RUNNING}}
	all, err := runtime.ListContainers(ctx, &criv1.ListContainersRequest{Filter: running})
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	failed := make([]error, len(all.GetContainers()))
	var wg sync.WaitGroup
	for i, c := range all.GetContainers() {
		wg.Go(func() {
			_, err := runtime.StopContainer(ctx, &criv1.StopContainerRequest{ContainerId: c.GetId(), Timeout: graceOf(c)})
			if err != nil {
				failed[i] = fmt.Errorf("stop container %s: %w", c.GetMetadata().GetName(), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// graceOf returns the grace period of a container in seconds.
func graceOf(c *criv1.Container) int64 {
	longest := int64(longestGrace / time.Second)
	grace, err := strconv.ParseInt(c.GetAnnotations()[graceAnnotation], 10, 64)
	if err != nil {
		return longest // Every container of a kubelet has one.
	}
	return min(grace, longest)
}
