//! Random schedules of small matrix products, and a model that says which of them are legal.
//!
//! The model knows nothing of cycles, intervals or junctions. It takes the loop's nodes with their operands
//! and LDS buffers, runs the trips of the pipeline for some iterations in the order that the schedule names,
//! and looks whether every node finds what it needs: operands of its own iteration, carried values of the one
//! before, and in its copy of an LDS buffer what its own iteration has written. It does so element by element
//! of the buffers, and for whole buffers: what is wrong for an element has to be refused, and what is right
//! for whole buffers applied. Between the two the compiler goes by parts of buffers, which are coarser than
//! elements, and check mode judges what it applies. For waves out of step the model does not know which
//! barriers are enough: there the simulator's check mode decides whether an accepted schedule is right.

use std::collections::{BTreeMap, BTreeSet};

use groundswell::author::AddressSpace;
use groundswell::author::Kernel;
use groundswell::author::Symbol;
use groundswell::check::with_findings;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::device::Device;
use groundswell::diagnostic::Kind;
use groundswell::internals::KernelResults;
use groundswell::internals::facts::Expansion;
use groundswell::internals::facts::LdsBuffer;
use groundswell::internals::facts::Remainder;
use groundswell::internals::layout::{Layout, Source as LayoutSource};
use groundswell::internals::node::{Body, Control, Op, Operands, Placement, Tag, Yields};
use groundswell::internals::walk;
use groundswell::internals::with_workspace;
use groundswell::options::Options;
use groundswell::schedule::{ClusterEntry, Directive, NodeType, Nodes, ScheduleTracer, WaveSchedule};
use groundswell::target::Target;

use super::{Choices, stages};

/// What became of a schedule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It was applied, and results were right.
    Applied,
    /// The same with one half of the waves late.
    Staggered,
    /// It is legal, and the loop has too few iterations for it.
    Short,
    /// It is illegal, or its barriers for waves out of step are too few, and was refused.
    Refused,
}

/// Where a node's operand comes from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Source {
    /// From a node of the same iteration.
    Node(usize),
    /// From a node of the iteration before.
    Carried(usize),
}

/// What a node does with LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Shared {
    No,
    Reads(u32),
    Writes(u32),
}

/// What of a buffer a write puts there, and a read needs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Grain {
    /// All that the write has, and all that any node writes.
    Buffers,
    /// The elements that the node touches itself, in any lane of any wave.
    Elements,
}

/// A node of the loop.
#[derive(Clone, Debug)]
struct Node {
    group: Group,
    sources: Vec<Source>,
    shared: Shared,
    /// The elements of its buffer that it touches, by number.
    elements: Vec<u32>,
    yielded: bool,
}

/// The properties by which a schedule can distinguish nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Group {
    tag: String,
    node_type: NodeType,
    space: Option<AddressSpace>,
}

/// Nodes that have one place: all of a group, or one of them.
#[derive(Clone, Debug)]
struct Unit {
    group: usize,
    /// Number of the only node, among those of the group.
    item: Option<usize>,
    nodes: Vec<usize>,
}

/// The places of units.
struct Plan {
    interval: usize,
    /// Cycles of each unit: one, or none or two by mistake.
    cycles: Vec<Vec<usize>>,
    copies: Option<u32>,
    eliminate_epilogue: bool,
    /// Another order of the steady state, by number of the node; empty for none.
    order: Vec<usize>,
    /// Barriers of the steady state after nodes of that order, if one half of the waves runs late.
    staggered: Option<Vec<(usize, Directive)>>,
}

impl Plan {
    fn stages(&self) -> usize {
        self.cycles.iter().flatten().max().map_or(1, |last| last / self.interval + 1)
    }
}

/// A kernel, and what it is compiled and run with.
struct Case {
    text: String,
    waves: usize,
    tiles: i64,
    k: i64,
    dynamic: bool,
}

/// The check: legal schedules are applied and right, others refused.
pub fn schedules(data: &[u8]) -> Result<(), String> {
    schedule_verdict(data).map(|_| ())
}

/// The same, with the verdict on the schedule.
pub fn schedule_verdict(data: &[u8]) -> Result<Verdict, String> {
    let mut choices = Choices::new(data);
    let case = case(&mut choices);
    let kernel = Kernel::parse(&case.text, "fuzz").map_err(|faults| format!("{faults:?}"))?;
    let nodes = loop_nodes(&kernel, &options(&case))?;
    let mut groups: Vec<Group> = Vec::new();
    for node in &nodes {
        if !groups.contains(&node.group) {
            groups.push(node.group.clone());
        }
    }
    let units = units(&mut choices, &nodes, &groups);
    let plan = plan(&mut choices, &nodes, &units, case.waves);
    let legal = judge(&nodes, &units, &plan);
    let traced = WaveSchedule::trace("random", |s| trace(s, &groups, &nodes, &units, &plan));
    let told = |what: String| {
        let schedule = traced.as_ref().map_or_else(|fault| fault.to_string(), |s| s.to_string());
        format!(
            "{what}\nmodel: {legal:?}\nK = {}{}\n{}{schedule}",
            case.k,
            if case.dynamic { " dynamic" } else { "" },
            case.text
        )
    };
    match &traced {
        Ok(schedule) => {
            let verdict = run(&case, &kernel, schedule, &legal, &plan).map_err(told)?;
            // Some of the schedules that are applied, since comparing after every pass takes long.
            let compared = data.iter().map(|&byte| u64::from(byte)).sum::<u64>().is_multiple_of(32);
            if compared && matches!(verdict, Verdict::Applied | Verdict::Staggered) {
                let options = options(&case).wave_schedule(schedule);
                let meaning = KernelResults::of(&kernel, &options, &|s| size(&case, s), 1);
                stages::compare(&kernel, &options, meaning).map_err(told)?;
            }
            Ok(verdict)
        }
        Err(_) if legal.pipeline.is_err() => Ok(Verdict::Refused),
        Err(fault) => Err(told(format!("refused when it was traced: {fault}"))),
    }
}

fn options(case: &Case) -> Options {
    let options = Options::new(Target::GFX942).set(Symbol::new("M"), 32).set(Symbol::new("N"), 32);
    let k = Symbol::new("K");
    if case.dynamic { options.dynamic(k) } else { options.set(k, case.k) }
}

fn size(case: &Case, symbol: Symbol) -> Option<i64> {
    Some(if symbol.name() == "K" { case.k } else { 32 })
}

fn run(
    case: &Case,
    kernel: &Kernel,
    schedule: &WaveSchedule,
    legal: &Legal,
    plan: &Plan,
) -> Result<Verdict, String> {
    let options = options(case).wave_schedule(schedule);
    let executable = match compile_uncached(kernel, &options, Verify::AfterEachPass) {
        Ok(executable) => executable,
        Err(fault) if fault.kind == Kind::Bug => return Err(format!("compile: {fault}")),
        Err(fault) => {
            // Which barriers are enough for waves out of step, only the simulator says.
            let must = legal.by_buffers.is_ok() && plan.staggered.is_none();
            return match must {
                true => Err(format!("legal, but refused: {fault}")),
                false => Ok(Verdict::Refused),
            };
        }
    };
    let short = executable.report().schedule_applied == "none";
    // A loop with too few iterations never gets to the order that is asked for.
    let judged = if short { &legal.pipeline } else { &legal.by_elements };
    if judged.is_err() {
        return Err("illegal, but accepted".to_owned());
    }
    if short && (case.dynamic || case.tiles as usize + 1 >= plan.stages()) {
        return Err(format!("not applied: {}", executable.report().schedule_why));
    }
    let value = |s: Symbol| size(case, s);
    let device = Device::simulator(Target::GFX942);
    let (report, comparison) =
        with_findings(kernel, &executable, &device, &value, 3).map_err(|fault| format!("run: {fault}"))?;
    match (report.is_clean(), comparison.ok) {
        (true, true) if short => Ok(Verdict::Short),
        (true, true) if plan.staggered.is_some() => Ok(Verdict::Staggered),
        (true, true) => Ok(Verdict::Applied),
        (true, false) => Err(format!("wrong result: {comparison:?}")),
        _ => Err(format!("findings: {report}")),
    }
}

fn case(choices: &mut Choices<'_>) -> Case {
    let waves = choices.one(&[[2, 2], [1, 1], [2, 1], [1, 2]]);
    let step = choices.one(&[32, 16]);
    let space = if choices.sometimes(5) { "global" } else { "shared" };
    let scaled = choices.sometimes(4);
    let tiles = 1 + choices.below(6) as i64;
    let k = tiles * step + if choices.sometimes(4) { 5 } else { 0 };
    let (x, scale) = match scaled {
        true => ("%scaled", "    %scaled = mul %x, 2.0 @scale\n"),
        false => ("%x", ""),
    };
    let text = format!(
        "kernel gemm {{\n  workgroup M, 32, 0\n  workgroup N, 32, 1\n  tile K, {step}\n  wave M, {}\n  wave N, {}\n  \
         mma f32_16x16x16_f16\n  a = memory [M, K] shared f16\n  b = memory [N, K] {space} f16\n  \
         c = memory [M, N] global f32\n  %zero = register [M, N] f32 0.0\n  %sum = iterate K (%acc = %zero) @k_loop {{\n    \
         %x = read a @read_a\n{scale}    %y = read b @read_b\n    %next = mma {x}, %y, %acc @mma\n    yield %next\n  }}\n  \
         write %sum, c\n}}\n",
        32 / waves[0],
        32 / waves[1],
    );
    Case { text, waves: waves[0] * waves[1], tiles, k, dynamic: choices.sometimes(3) }
}

/// The nodes of the loop's body in program order, except for carried values.
fn loop_nodes(kernel: &Kernel, options: &Options) -> Result<Vec<Node>, String> {
    with_workspace(|workspace| {
        workspace.load(kernel, options);
        workspace.run(Some("expand"), Verify::AfterEachPass, &mut Vec::new()).map_err(|f| f.to_string())?;
        let world = &workspace.world;
        let region = walk::body(world, workspace.root).into_iter().find(|&node| {
            let logical = world.get::<Expansion>(node).map_or(node, |e| e.logical);
            matches!(world.get::<Op>(node), Some(Op::Iterate(_))) && world.get::<Remainder>(logical).is_none()
        });
        let region = region.ok_or("no loop")?;
        let yields = world.get::<Yields>(region).map(|y| y.0.to_vec()).unwrap_or_default();
        let body = world.get::<Body>(region).map(|b| b.0.clone()).unwrap_or_default();
        let carried = |&node: &_| matches!(world.get::<Op>(node), Some(Op::IterArg(_)));
        let order: Vec<_> = body.iter().copied().filter(|node| !carried(node)).collect();
        let mut touched: BTreeMap<_, Vec<BTreeSet<u32>>> = BTreeMap::new();
        let number = |node| order.iter().position(|&n| n == node);
        let mut nodes = Vec::new();
        for &node in &order {
            let &op = world.get::<Op>(node).ok_or("a node without operation")?;
            let operands = world.get::<Operands>(node).map(|o| o.0.to_vec()).unwrap_or_default();
            let mut sources = Vec::new();
            for &operand in &operands {
                sources.extend(match world.get::<Op>(operand) {
                    Some(&Op::IterArg(at)) => number(yields[at as usize]).map(Source::Carried),
                    _ => number(operand).map(Source::Node),
                });
            }
            let buffer = operands.last().filter(|&&m| world.get::<Op>(m) == Some(&Op::Allocate));
            let shared = match (op, buffer) {
                (Op::Read, Some(buffer)) => Shared::Reads(buffer.index_u32()),
                (Op::Write, Some(buffer)) => Shared::Writes(buffer.index_u32()),
                _ => Shared::No,
            };
            let space = match (op, shared) {
                (Op::Read, Shared::No) => Some(AddressSpace::Global),
                (Op::Read, _) => Some(AddressSpace::Shared),
                _ => None,
            };
            let expansion = Expansion::at(world, node);
            let logical = expansion.logical;
            let elements = match (shared, buffer.and_then(|&buffer| world.get::<LdsBuffer>(buffer))) {
                (Shared::No, _) | (_, None) => Vec::new(),
                (_, Some(buffer)) => {
                    let layout = &world.get::<Placement>(logical).ok_or("an access without layout")?.0;
                    let of_node = touched.entry(logical).or_insert_with(|| elements_of(layout, buffer));
                    of_node[expansion.replica as usize].iter().copied().collect()
                }
            };
            let tag = world.get::<Tag>(logical).map(|tag| tag.0.to_string()).ok_or("a node without tag")?;
            let node_type = NodeType::of(op).ok_or("a node without type")?;
            let group = Group { tag, node_type, space };
            nodes.push(Node { group, sources, shared, elements, yielded: yields.contains(&node) });
        }
        Ok(nodes)
    })
}

/// For each replica of an access, the elements of its buffer that it touches: row by row.
fn elements_of(layout: &Layout, buffer: &LdsBuffer) -> Vec<BTreeSet<u32>> {
    let mut elements = vec![BTreeSet::new(); layout.extent(LayoutSource::Replica) as usize];
    for place in layout.places() {
        let along = buffer.dims.iter().zip(&buffer.extents);
        let number = along.fold(0, |number, (&dim, extent)| number * extent + layout.coordinate(dim, place));
        elements[place.replica as usize].insert(number);
    }
    elements
}

/// Groups, some of them node by node; in program order of their first nodes.
fn units(choices: &mut Choices<'_>, nodes: &[Node], groups: &[Group]) -> Vec<Unit> {
    let mut units = Vec::new();
    for (group, key) in groups.iter().enumerate() {
        let own: Vec<usize> = (0..nodes.len()).filter(|&n| nodes[n].group == *key).collect();
        if choices.sometimes(3) {
            let single = |(item, &node): (usize, &usize)| Unit { group, item: Some(item), nodes: vec![node] };
            units.extend(own.iter().enumerate().map(single));
        } else {
            units.push(Unit { group, item: None, nodes: own });
        }
    }
    units.sort_by_key(|unit| unit.nodes[0]);
    units
}

fn plan(choices: &mut Choices<'_>, nodes: &[Node], units: &[Unit], waves: usize) -> Plan {
    let interval = 1 + choices.below(4);
    let stages = 1 + choices.below(4);
    let mut cycles: Vec<usize> = units.iter().map(|_| choices.below(interval * stages)).collect();
    // Random places are seldom legal; places in program order often are.
    match choices.below(8) {
        0 => {}
        1 => {
            cycles.sort_unstable();
            let (a, b) = (choices.below(cycles.len()), choices.below(cycles.len()));
            cycles.swap(a, b);
        }
        _ => cycles.sort_unstable(),
    }
    let mut cycles: Vec<Vec<usize>> = cycles.into_iter().map(|cycle| vec![cycle]).collect();
    if choices.sometimes(24) {
        let at = choices.below(cycles.len());
        match choices.below(2) {
            0 => cycles[at].clear(),
            _ => cycles[at].push(choices.below(interval * stages)),
        }
    }
    let copies = choices.one(&[None, None, Some(1), Some(2), Some(3), Some(4)]);
    let eliminate_epilogue = choices.sometimes(5);
    let mut plan = Plan { interval, cycles, copies, eliminate_epilogue, order: Vec::new(), staggered: None };
    if plan.copies.is_some() && plan.cycles.iter().all(|c| c.len() == 1) && choices.sometimes(2) {
        plan.order = steady_order(units, &plan).into_iter().map(|placed| placed.0).collect();
        for _ in 0..choices.below(5) {
            let (from, to) = (choices.below(nodes.len()), choices.below(nodes.len()));
            let node = plan.order.remove(from);
            plan.order.insert(to, node);
        }
        if waves > 1 && choices.sometimes(2) {
            let directives = [Directive::SharedMemoryBarrier, Directive::Control(Control::WorkgroupBarrier)];
            // Mostly where kinds of nodes change, as an author would.
            let border = |at: usize| {
                at + 1 == nodes.len() || nodes[plan.order[at]].group != nodes[plan.order[at + 1]].group
            };
            let mut barriers = Vec::new();
            for (at, &node) in plan.order.iter().enumerate() {
                let here = if border(at) { !choices.sometimes(3) } else { choices.sometimes(8) };
                if here {
                    barriers.push((node, directives[usize::from(choices.sometimes(6))]));
                }
            }
            plan.staggered = Some(barriers);
        }
    }
    plan
}

/// Nodes of one trip with their stages: slot by slot, oldest iteration first, then in program order.
fn steady_order(units: &[Unit], plan: &Plan) -> Vec<(usize, usize)> {
    let mut placed: Vec<(usize, usize, usize)> = Vec::new();
    for (unit, cycles) in units.iter().zip(&plan.cycles) {
        for cycle in cycles {
            placed
                .extend(unit.nodes.iter().map(|&node| (cycle % plan.interval, cycle / plan.interval, node)));
        }
    }
    placed.sort_by_key(|&(slot, stage, node)| (slot, std::cmp::Reverse(stage), node));
    placed.into_iter().map(|(_, stage, node)| (node, stage)).collect()
}

/// What the model says.
#[derive(Debug)]
struct Legal {
    /// Of the stages and slots, element by element.
    pipeline: Result<(), String>,
    /// Of these and of the order of the steady state that is asked for after that.
    by_elements: Result<(), String>,
    /// The same if buffers are taken whole.
    by_buffers: Result<(), String>,
}

fn judge(nodes: &[Node], units: &[Unit], plan: &Plan) -> Legal {
    let order = steady_order(units, plan);
    let mut times = vec![0; nodes.len()];
    order.iter().for_each(|&(node, _)| times[node] += 1);
    if let Some(node) = times.iter().position(|&times| times != 1) {
        let fault = || Err(format!("node {node} has {} places", times[node]));
        return Legal { pipeline: fault(), by_elements: fault(), by_buffers: fault() };
    }
    let stage_of: BTreeMap<usize, usize> = order.iter().copied().collect();
    let other: Vec<(usize, usize)> = plan.order.iter().map(|&node| (node, stage_of[&node])).collect();
    let both = |grain| {
        simulate(nodes, &order, plan, grain)?;
        if other.is_empty() { Ok(()) } else { simulate(nodes, &other, plan, grain) }
    };
    Legal {
        pipeline: simulate(nodes, &order, plan, Grain::Elements),
        by_elements: both(Grain::Elements),
        by_buffers: both(Grain::Buffers),
    }
}

/// Runs the trips of a pipeline whose loop has more iterations than any node in it is ahead.
fn simulate(nodes: &[Node], order: &[(usize, usize)], plan: &Plan, grain: Grain) -> Result<(), String> {
    let stages = plan.stages();
    let iterations = stages + 8;
    let mut done = vec![vec![false; iterations]; nodes.len()];
    // Which iteration's value is in a copy of a buffer: of each write, or of each element.
    let mut held: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    let copy_of = |iteration: usize| plan.copies.map_or(iteration, |copies| iteration % copies as usize);
    let writers = |buffer| {
        let all = nodes.iter().zip(0..).filter(move |(node, _)| node.shared == Shared::Writes(buffer));
        all.map(|(_, number)| number).collect::<Vec<u32>>()
    };
    for trip in 0..iterations + stages - 1 {
        for &(node, stage) in order {
            let Some(iteration) = trip.checked_sub(stage) else { continue };
            if iteration >= iterations {
                // A loop without epilogue runs these too; the values of the loop must not depend on
                // them.
                if plan.eliminate_epilogue && nodes[node].yielded {
                    return Err(format!("node {node} runs for iteration {iteration}, which does not exist"));
                }
                continue;
            }
            for source in &nodes[node].sources {
                let found = match *source {
                    Source::Node(from) => done[from][iteration],
                    Source::Carried(from) => iteration == 0 || done[from][iteration - 1],
                };
                if !found {
                    return Err(format!("node {node} of iteration {iteration} misses {source:?}"));
                }
            }
            let copy = copy_of(iteration);
            // Buffers are told apart by their writers, or by numbers beyond those of their elements.
            let elements = |buffer: u32| {
                nodes[node].elements.iter().map(move |&element| ((buffer + 1) << 16) | element).collect()
            };
            match nodes[node].shared {
                Shared::No => {}
                Shared::Writes(buffer) => {
                    let places: Vec<u32> = match grain {
                        Grain::Buffers => vec![node as u32],
                        Grain::Elements => elements(buffer),
                    };
                    held.extend(places.into_iter().map(|place| ((copy, place), iteration)));
                }
                Shared::Reads(buffer) => {
                    let places: Vec<u32> = match grain {
                        Grain::Buffers => writers(buffer),
                        Grain::Elements => elements(buffer),
                    };
                    for place in places {
                        let found = held.get(&(copy, place));
                        if found != Some(&iteration) {
                            let text =
                                format!("node {node} of iteration {iteration} reads {found:?} of {place}");
                            return Err(text);
                        }
                    }
                }
            }
            done[node][iteration] = true;
        }
    }
    Ok(())
}

/// Writes a plan down as a schedule.
fn trace(s: &ScheduleTracer, groups: &[Group], nodes: &[Node], units: &[Unit], plan: &Plan) {
    let k_loop = s.get_node_by_tag("k_loop");
    let lists: Vec<Nodes> = groups
        .iter()
        .map(|group| {
            let list = s.get_node_by_tag_and_type(&group.tag, group.node_type);
            match group.space {
                Some(space) => s.partition_by_address_space(list, space).0,
                None => list,
            }
        })
        .collect();
    let placed: Vec<Nodes> = units
        .iter()
        .map(|unit| match unit.item {
            Some(item) => s.getitem(lists[unit.group], item as u32),
            None => lists[unit.group],
        })
        .collect();
    let pipelined = s.pipeline(k_loop, |p| {
        if plan.eliminate_epilogue {
            p.eliminate_epilogue();
        }
        if let Some(copies) = plan.copies {
            p.multi_buffer_count(copies);
        }
        for stage in 0..plan.stages() {
            let slot = |slot: usize| -> Vec<Nodes> {
                let cycle = stage * plan.interval + slot;
                let here = units.iter().zip(&plan.cycles).zip(&placed);
                here.flat_map(|((_, cycles), &list)| {
                    cycles.iter().filter(|&&c| c == cycle).map(move |_| list)
                })
                .collect()
            };
            p.set_stage((0..plan.interval).map(slot).collect::<Vec<_>>());
        }
    });
    if plan.order.is_empty() {
        return;
    }
    let kernel = pipelined.kernel();
    let of_kernel: Vec<Nodes> = lists.iter().map(|&list| s.filter_nodes(list, kernel, None)).collect();
    let mut entries: Vec<ClusterEntry> = Vec::new();
    for &node in &plan.order {
        let group = groups.iter().position(|group| *group == nodes[node].group).unwrap_or(0);
        let item = nodes[..node].iter().filter(|other| other.group == nodes[node].group).count();
        entries.push(s.getitem(of_kernel[group], item as u32).into());
        if node % 3 == 0 {
            entries.push(Directive::Control(Control::SchedulingBarrier).into());
        }
        let after = plan.staggered.iter().flatten().filter(|barrier| barrier.0 == node);
        entries.extend(after.map(|barrier| ClusterEntry::from(barrier.1)));
    }
    let cluster = s.cluster(entries);
    s.reorder_graph(kernel, cluster);
    if plan.staggered.is_some() {
        s.stagger(kernel);
    }
}
