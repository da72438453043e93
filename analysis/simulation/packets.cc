// The replay of tasks over TCP in ns-3, compiled when it runs; packets_process.py feeds it.
#include <deque>
#include <vector>

namespace ddlopt
{
using namespace ns3;

struct Task
{
    int channel = -1; // none: it only takes time
    uint64_t bytes = 0;
    double seconds = 0;
    int waiting = 0; // tasks that it still waits for
    std::vector<int> next;
    double end = -1;
};

// One TCP connection along one path; its messages go one after the other.
struct Channel
{
    Ptr<Socket> sender;
    uint64_t unsent = 0;
    uint64_t received = 0;
    uint64_t expected = 0; // bytes until the first message in line is complete
    std::deque<int> line;
    bool open = false;
};

class Replay
{
  public:
    uint64_t drops = 0;
    uint64_t sent_bytes = 0;
    uint64_t sent_packets = 0;
    uint64_t timeouts = 0;
    std::vector<double> ends;

    void Nodes(int count, uint32_t mtu, uint32_t headers, const std::string& control, double least_timeout_s)
    {
        Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mtu - headers));
        Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1u << 26));
        Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1u << 26));
        Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
        // A sender that begins anew with one packet would wait for a delayed acknowledgement as long as for a timeout.
        Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(1)));
        Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(least_timeout_s)));
        Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + control)));
        m_mtu = mtu;
        m_nodes.Create(count);
        InternetStackHelper stack;
        Ipv4StaticRoutingHelper routing;
        stack.SetRoutingHelper(routing);
        stack.SetIpv6StackInstall(false);
        stack.Install(m_nodes);
        m_links.resize(count);
    }

    void Link(int from, int to, uint64_t bits_per_s, double delay_s, uint32_t queue_packets)
    {
        PointToPointHelper helper;
        helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(bits_per_s)));
        helper.SetDeviceAttribute("Mtu", UintegerValue(m_mtu));
        helper.SetChannelAttribute("Delay", TimeValue(Seconds(delay_s)));
        helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue_packets)));
        // With flow control a packet that finds a full queue would be lost in the layer above, where nobody counts it.
        helper.DisableFlowControl();
        NetDeviceContainer pair = helper.Install(m_nodes.Get(from), m_nodes.Get(to));
        m_links[from][to] = {Interface(from, pair.Get(0)), Interface(to, pair.Get(1))};
        for (int k = 0; k < 2; ++k)
        {
            auto device = DynamicCast<PointToPointNetDevice>(pair.Get(k));
            device->TraceConnectWithoutContext("MacTxDrop", MakeCallback(&Replay::Dropped, this));
            device->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Replay::Sent, this));
        }
    }

    // Messages follow `path`, their acknowledgements `back`, or where that is empty the same links the other way round.
    int Open(const std::vector<int>& path, const std::vector<int>& back)
    {
        int place = m_channels.size();
        m_channels.emplace_back();
        uint32_t net = (11u << 24) + 4u * (place + 1);
        Ipv4Address source(net + 1), target(net + 2);
        int first = path.front(), last = path.back();
        auto ipv4 = m_nodes.Get(first)->GetObject<Ipv4>();
        // The sender takes, of the addresses of its interface, the one in the subnet of the target.
        ipv4->AddAddress(m_links[first][path[1]].first, Ipv4InterfaceAddress(source, Ipv4Mask("255.255.255.252")));
        m_nodes.Get(last)->GetObject<Ipv4>()->AddAddress(0, Ipv4InterfaceAddress(target, Ipv4Mask("255.255.255.255")));
        for (size_t k = 0; k + 1 < path.size(); ++k)
        {
            Route(path[k], target, m_links[path[k]][path[k + 1]].first);
            if (back.empty())
            {
                Route(path[k + 1], source, m_links[path[k]][path[k + 1]].second);
            }
        }
        for (size_t k = 0; k + 1 < back.size(); ++k)
        {
            Route(back[k], source, m_links[back[k]][back[k + 1]].first);
        }
        InetSocketAddress address(target, 5000);
        auto listener = Socket::CreateSocket(m_nodes.Get(last), TcpSocketFactory::GetTypeId());
        listener->Bind(address);
        listener->Listen();
        listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                    Callback<void, Ptr<Socket>, const Address&>(
                                        [this, place](Ptr<Socket> accepted, const Address&) {
                                            accepted->SetRecvCallback(Callback<void, Ptr<Socket>>(
                                                [this, place](Ptr<Socket> from) { Received(place, from); }));
                                        }));
        m_listeners.push_back(listener);
        auto sender = Socket::CreateSocket(m_nodes.Get(first), TcpSocketFactory::GetTypeId());
        sender->SetConnectCallback(Callback<void, Ptr<Socket>>([this, place](Ptr<Socket>) {
                                       m_channels[place].open = true;
                                       Pump(place);
                                   }),
                                   Callback<void, Ptr<Socket>>([](Ptr<Socket>) {}));
        sender->SetSendCallback(
            Callback<void, Ptr<Socket>, uint32_t>([this, place](Ptr<Socket>, uint32_t) { Pump(place); }));
        sender->TraceConnectWithoutContext("CongState", MakeCallback(&Replay::Congested, this));
        m_channels[place].sender = sender;
        Simulator::Schedule(Seconds(0), [sender, address]() { sender->Connect(address); });
        return place;
    }

    void Add(int channel, uint64_t bytes, double seconds, const std::vector<int>& after)
    {
        int place = m_tasks.size();
        m_tasks.emplace_back();
        Task& task = m_tasks.back();
        task.channel = channel;
        task.bytes = bytes;
        task.seconds = seconds;
        task.waiting = after.size();
        for (int before : after)
        {
            m_tasks[before].next.push_back(place);
        }
    }

    // Whether all tasks ended in time; connections are open before the first begins.
    bool Run(double begin_s, double most_s)
    {
        m_begin = begin_s;
        m_left = m_tasks.size();
        Simulator::Schedule(Seconds(begin_s), [this]() {
            for (size_t place = 0; place < m_tasks.size(); ++place)
            {
                if (m_tasks[place].waiting == 0)
                {
                    Begin(place);
                }
            }
        });
        Simulator::Stop(Seconds(begin_s + most_s));
        Simulator::Run();
        for (const Task& task : m_tasks)
        {
            ends.push_back(task.end);
        }
        return m_left == 0;
    }

  private:
    uint32_t m_mtu = 1500;
    double m_begin = 0;
    size_t m_left = 0;
    uint32_t m_addresses = 0;
    NodeContainer m_nodes;
    std::vector<std::map<int, std::pair<uint32_t, uint32_t>>> m_links;
    std::deque<Channel> m_channels;
    std::deque<Task> m_tasks;
    std::vector<Ptr<Socket>> m_listeners;

    uint32_t Interface(int node, Ptr<NetDevice> device)
    {
        auto ipv4 = m_nodes.Get(node)->GetObject<Ipv4>();
        uint32_t place = ipv4->AddInterface(device);
        ipv4->AddAddress(place, Ipv4InterfaceAddress(Ipv4Address((10u << 24) + ++m_addresses), Ipv4Mask("255.255.255.255")));
        ipv4->SetMetric(place, 1);
        ipv4->SetUp(place);
        return place;
    }

    void Route(int node, Ipv4Address target, uint32_t interface)
    {
        Ipv4StaticRoutingHelper helper;
        helper.GetStaticRouting(m_nodes.Get(node)->GetObject<Ipv4>())->AddHostRouteTo(target, interface);
    }

    void Begin(int place)
    {
        Task& task = m_tasks[place];
        if (task.channel < 0)
        {
            Simulator::Schedule(Seconds(task.seconds), [this, place]() { End(place); });
            return;
        }
        Channel& channel = m_channels[task.channel];
        channel.unsent += task.bytes;
        channel.line.push_back(place);
        if (channel.line.size() == 1)
        {
            channel.expected = task.bytes;
        }
        Pump(task.channel);
    }

    void End(int place)
    {
        Task& task = m_tasks[place];
        task.end = Simulator::Now().GetSeconds() - m_begin;
        if (--m_left == 0)
        {
            Simulator::Stop();
        }
        for (int next : task.next)
        {
            if (--m_tasks[next].waiting == 0)
            {
                Begin(next);
            }
        }
    }

    void Pump(int place)
    {
        Channel& channel = m_channels[place];
        while (channel.open && channel.unsent > 0)
        {
            uint64_t size = std::min<uint64_t>({channel.unsent, channel.sender->GetTxAvailable(), 1u << 20});
            if (size == 0)
            {
                return;
            }
            int taken = channel.sender->Send(Create<Packet>(static_cast<uint32_t>(size)));
            if (taken <= 0)
            {
                return;
            }
            channel.unsent -= taken;
        }
    }

    void Received(int place, Ptr<Socket> from)
    {
        Channel& channel = m_channels[place];
        while (Ptr<Packet> packet = from->Recv())
        {
            channel.received += packet->GetSize();
        }
        while (!channel.line.empty() && channel.received >= channel.expected)
        {
            channel.received -= channel.expected;
            int done = channel.line.front();
            channel.line.pop_front();
            channel.expected = channel.line.empty() ? 0 : m_tasks[channel.line.front()].bytes;
            End(done);
        }
    }

    void Dropped(Ptr<const Packet>)
    {
        ++drops;
    }

    // A sender whose timer ran out takes all that is on its way for lost; what acknowledgements tell is no loss so.
    void Congested(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
    {
        timeouts += now == TcpSocketState::CA_LOSS;
    }

    void Sent(Ptr<const Packet> packet)
    {
        sent_bytes += packet->GetSize();
        ++sent_packets;
    }
};
} // namespace ddlopt
