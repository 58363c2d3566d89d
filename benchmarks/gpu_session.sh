#!/usr/bin/env bash
# What is run on a GPU machine, in parts that each stay under ten minutes; results go to OUT.
#   benchmarks/gpu_session.sh OUT record    doctor, GPU tests, recorded sessions, a picture of the screen
#   benchmarks/gpu_session.sh OUT cost      what probes cost, beside NVIDIA's IKET
#   benchmarks/gpu_session.sh OUT builtin   bench, sweeps, live session and checks of our own kernels (needs CuPy alone)
#   benchmarks/gpu_session.sh OUT ab        A/B: error rate, power, latency, watching, recorded A/Bs, a hang; uses two GPUs
#                                           at a time where there are two
set -u
out=$1 part=$2
cd "$(dirname "$0")/.."
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 LANG=C.UTF-8 FA4TOP_SESSIONS=/tmp/fa4top-gpu-sessions FA4TOP_CONFIG=/tmp/fa4top-gpu.toml
mkdir -p "$out"
step() { echo "== $* ($(date +%T))"; }

if [ "$part" = builtin ]; then
  share() { python3 -m fa4top replay "$1" --share | gzip -9n > "$2"; }
  step bench, cold cache; time python3 -m fa4top bench --json > "$out/bench-cold.jsonl" 2> "$out/bench.err"
  step bench, warm cache; time python3 -m fa4top bench --json > "$out/bench.jsonl" 2>> "$out/bench.err"
  share "$out/bench.jsonl" "$out/h200-bench.jsonl.gz"; python3 -m fa4top replay --text "$out/bench.jsonl"
  step sweep
  time python3 -m fa4top sweep p_split=1/8,1/4,3/8,1/2,5/8,3/4,7/8 pv_mode=bf16,fp8 --target builtin --json \
    > "$out/sweep.jsonl" 2> "$out/sweep.err"
  share "$out/sweep.jsonl" "$out/h200-split-sweep.jsonl.gz"; python3 -m fa4top replay --text "$out/sweep.jsonl"
  step live; python3 -m fa4top live --target builtin --seconds 8 --json > "$out/live.jsonl" 2> "$out/live.err"
  share "$out/live.jsonl" "$out/h200-builtin.jsonl.gz"; python3 -m fa4top replay --text "$out/live.jsonl" | head -14
  step cost; timeout 100 python3 benchmarks/builtin_cost.py 2>&1 | tee "$out/builtin-cost.txt"
  step sanitizer
  for tool in memcheck synccheck racecheck; do
    every=$([ $tool = racecheck ] && echo every-thread)
    timeout 60 compute-sanitizer --tool $tool python3 benchmarks/sanitize.py $every > "$out/$tool.txt" 2>&1
    echo "$tool: $(grep -c ^ok "$out/$tool.txt") launches, $(tail -1 "$out/$tool.txt")"
  done
  step ncu
  timeout 90 ncu --clock-control none --metrics regex:smsp__inst_executed_pipe_.*sum -k regex:bench \
    python3 benchmarks/bench_ncu.py > "$out/ncu.txt" 2>&1
  python3 benchmarks/bench_ncu.py table "$out/ncu.txt" | tee "$out/ncu-table.txt"
  step tests
  timeout 250 python3 -m pytest tests/gpu/test_builtin.py -m gpu -s -p no:cacheprovider -o addopts= -q > "$out/tests.txt" 2>&1
  grep -E "passed|failed|^E |FAILED" "$out/tests.txt" | head -30
elif [ "$part" = ab ]; then
  gpus=$(nvidia-smi -L | wc -l)
  keep() { FA4TOP_SESSIONS=$out/sessions timeout 100 python3 -m fa4top "${@:2}" > "$out/$1.txt" 2> "$out/$1.err"; tail -4 "$out/$1.txt"; }
  first() {
    export CUDA_VISIBLE_DEVICES=0
    step latency; timeout 120 python3 benchmarks/live_session.py b fa4 mma_pv_is_rs=off intra_wg_overlap=off tile_mn=128x112 2>&1 | tail -4
    step fa4; keep fa4 ab --target fa4 --b mma_pv_is_rs=off --budget 4s --watch
    step hang; timeout 150 python3 -m fa4top live --target builtin --unsafe --set lost_signal=on --seconds 5 --json 2> "$out/hang.err" | grep '"hang"'
    step A/A; python3 benchmarks/ab_live.py aa 6 5 200 "" 0 > "$out/aa0.txt" 2> "$out/aa0.err"; tail -1 "$out/aa0.txt"
  }
  second() {
    export CUDA_VISIBLE_DEVICES=$((gpus > 1 ? 1 : 0))
    step fp8; keep fp8 ab --target builtin --set pv_mode=fp8 --a p_split=1/2 --b p_split=3/4 --budget 4s --watch
    step sweep; keep sweep sweep p_split=1/8,1/4,3/8,1/2,5/8,3/4,7/8 --set pv_mode=fp8 --target builtin
    step known; timeout 60 python3 benchmarks/ab_live.py known 2 6 2> "$out/known.err" | grep true
    step watched; timeout 90 python3 benchmarks/live_session.py watched builtin 5 2>&1 | tail -1
    step A/A; python3 benchmarks/ab_live.py aa 6 5 200 "" 500 > "$out/aa1.txt" 2> "$out/aa1.err"; tail -1 "$out/aa1.txt"
  }
  if [ "$gpus" -gt 1 ]; then first & second & wait; else first; second; fi
elif [ "$part" = record ]; then
  step doctor; python3 -m fa4top doctor > "$out/doctor.txt" 2>&1
  step record
  timeout 240 python3 benchmarks/record_plans.py "$out/h200-fa4.jsonl.gz" --target fa4 --seconds 9 --rate 4 \
    s8192 "s8192 causal" s4096 s16384 "s8192,hk4 causal" "s8192 fp16" "s8192,d64" 2> "$out/record.err"
  tail -8 "$out/record.err"
  step tests; timeout 250 python3 -m pytest tests/gpu -m gpu -s -p no:cacheprovider -o addopts= -q > "$out/tests.txt" 2>&1
  grep -E "traced|passed|failed|^E |FAILED" "$out/tests.txt" | head -40
  step live; python3 -m fa4top live --target fa4 --seconds 6 --json > "$out/live.jsonl" 2> "$out/live.err"
  python3 -m fa4top replay --text "$out/live.jsonl" | head -12
  step inflight; python3 -m fa4top live --target fa4 --seconds 5 --inflight 2> "$out/inflight.err" | head -12
  step screen
  tmux -u new-session -d -s gpu -x 120 -y 40 "TERM=xterm-256color python3 -m fa4top --target fa4; sleep 5"
  for _ in $(seq 60); do sleep 0.5; tmux capture-pane -p -t gpu | grep -q TFLOP && break; done
  sleep 20; tmux send-keys -t gpu p; sleep 2; tmux capture-pane -p -t gpu > "$out/screen.txt"
  mv fa4top-*.svg "$out/screen.svg"; tmux send-keys -t gpu q; sleep 1; tmux send-keys -t gpu s; sleep 3
  tmux capture-pane -p -t gpu | head -3
else
  for shape in "s8192" "s8192 --causal" "s4096" "s16384"; do
    # shellcheck disable=SC2086
    step "probe cost $shape"; python3 benchmarks/probe_cost.py --rounds 40 --shape $shape coarse period detail 2>> "$out/cost.err"
  done | tee "$out/cost.txt"
  step points; python3 benchmarks/probe_cost.py --rounds 60 coarse turn+tile waits+mark+tile waits+tile turn+waits turn+x \
    2>> "$out/cost.err" | tee "$out/points.txt"
  step iket stripped; python3 benchmarks/iket_cost.py 2> "$out/iket.err" | tee "$out/iket.txt"
  step iket recording
  dir=$(python3 -c 'import cutlass, pathlib; print(pathlib.Path(cutlass.__file__).parent.parent)')
  (cd /tmp && timeout 120 python3 -c "from iket.cli.main import entrypoint; entrypoint()" profile --postprocess none -- python3 "$OLDPWD/benchmarks/iket_cost.py" --rounds 20) \
    > "$out/iket-rec.txt" 2>&1 || (cd /tmp && ls "$dir/iket/cli" >> "$out/iket-rec.txt")
  tail -15 "$out/iket-rec.txt"
fi
tar -C "$out" -czf "$out/all.tgz" --exclude all.tgz .
