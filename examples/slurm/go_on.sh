# Sourced by the scripts beside it. The command goes on in the same job, queued again, if the
# job's time ends first: 120 s before that Slurm sends USR1 to the script (--signal), the command
# stops in order, and its next start goes on from the checkpoints. Where a node fails, Slurm itself
# queues the job again (--requeue).

go_on() {
    local pid='' stopped='' status
    trap 'stopped=yes; [ -z "$pid" ] || kill -TERM "$pid"' USR1
    "$@" &
    pid=$!
    [ -z "$stopped" ] || kill -TERM "$pid"
    wait "$pid"
    status=$?
    if [ -n "$stopped" ]; then # that ended the wait, not the command
        wait "$pid"
        status=$?
    fi
    if [ -n "$stopped" ] && [ "$status" -ne 0 ]; then
        echo "the job's time is over: queued again"
        # By its number in the array: one of the array's jobs has the id of them all.
        scontrol requeue "${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_}${SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}"
        sleep 60 # Slurm ends the script
    fi
    return "$status"
}
